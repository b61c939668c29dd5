package cloud

import (
	"context"
	"strings"

	"google.golang.org/api/compute/v1"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/gce/reason"
)

// DeleteDisk deletes a disk that no instance has.
func (c *Client) DeleteDisk(ctx context.Context, found *Disk) error {
	if len(found.Users) > 0 {
		return stillAttached(found)
	}
	err := c.do(ctx, change{
		doing: "deleting disk " + found.Path(),
		at:    found.At(),
		basis: []string{"delete", found.Path(), found.incarnation()},
		send: func(ctx context.Context, requestID string) (*compute.Operation, error) {
			return c.disksIn(found.At()).Delete(ctx, found.Name, requestID)
		},
	})
	switch reason.Of(err) {
	case reason.InUse:
		return backend.InProgress.Errorf("disk %s is in use: it is deleted once it isn't: %w", found.Path(), err)
	case reason.NotFound:
		return nil
	case reason.NotReady:
		if found.Status != DiskReady && found.Status != DiskFailed {
			return backend.InProgress.Errorf("disk %s is %s: it is deleted after that: %w", found.Path(), found.Status, err)
		}
	}
	return err
}

func stillAttached(found *Disk) error {
	var instances []string
	for _, user := range found.Users {
		instances = append(instances, NameOf(user))
	}
	return backend.InProgress.Errorf("disk %s is attached to instance %s: waiting for it to be detached; if no node uses it any more, detach it by hand",
		found.Path(), strings.Join(instances, ", "))
}

// NoDisk is the error for a disk that doesn't exist.
func (c *Client) NoDisk(id string) error {
	return backend.NotFound.Errorf("project %s has no disk %s: it was deleted, or was never made", c.Project, id)
}
