package gce

import (
	"context"
	"fmt"
	"strings"

	"google.golang.org/api/compute/v1"

	"github.com/stowage-dev/stowage/internal/backend"
)

func (c *cloud) deleteDisk(ctx context.Context, found *disk) error {
	if len(found.Users) > 0 {
		return stillAttached(found)
	}
	err := c.make(ctx, change{
		doing: "deleting disk " + found.path(),
		zone:  found.zone(),
		basis: []string{"delete", found.path(), found.incarnation()},
		ask: func(ctx context.Context, requestID string) (*compute.Operation, error) {
			return c.compute.Disks.Delete(c.project, found.zone(), found.Name).RequestId(requestID).Context(ctx).Do()
		},
	})
	switch reasonOf(err) {
	case inUse:
		return backend.InProgress.Errorf("disk %s is in use: it is deleted once it isn't: %w", found.path(), err)
	case notFound:
		return nil
	case notReady:
		if found.Status != diskReady && found.Status != diskFailed {
			return backend.InProgress.Errorf("disk %s is %s: it is deleted after that: %w", found.path(), found.Status, err)
		}
	}
	return err
}

func stillAttached(found *disk) error {
	var instances []string
	for _, user := range found.Users {
		instances = append(instances, nameOf(user))
	}
	return backend.InProgress.Errorf("disk %s is attached to instance %s: waiting for it to be detached; if no node uses it any more, detach it by hand",
		found.path(), strings.Join(instances, ", "))
}

// notThere is the error for what needs a disk that there is not.
func (c *cloud) notThere(id string) error {
	return backend.NotFound.Errorf("project %s has no disk %s: it was deleted, or was never made", c.project, id)
}

// idOf is a number of the API's as a word.
func idOf(number uint64) string { return fmt.Sprint(number) }
