package gce

import (
	"context"
	"fmt"
	"strings"

	"google.golang.org/api/compute/v1"

	"github.com/stowage-dev/stowage/internal/backend"
)

// delete removes each disk of the name that is ours: a backend whose zones were changed
// while a call was under way may have begun two.
func (b *gceBackend) delete(ctx context.Context, c *cloud, id string) error {
	if !validID.MatchString(id) {
		return backend.Conflict.Errorf("%q is no id of a volume: nothing is deleted for it", id)
	}
	found, err := c.disksNamed(ctx, id)
	if err != nil {
		return err
	}
	if len(found) == 0 {
		// What was begun when it was looked for may be there now.
		if err := c.checkNotBegun(ctx, id, c.zones...); err != nil {
			return err
		}
		if found, err = c.disksNamed(ctx, id); len(found) == 0 || err != nil {
			return err
		}
	}
	if _, err := b.pickOwn(found); err != nil {
		return err
	}
	for _, one := range found {
		if _, foreign := b.checkOwner(one); foreign != nil {
			continue
		}
		if err := c.deleteDisk(ctx, one); err != nil {
			return err
		}
	}
	return nil
}

// checkNotBegun looks for a disk that was asked for and isn't to be seen yet. What was
// asked for and hasn't arrived nobody sees: whoever doesn't know how a call ended repeats
// it before this.
func (c *cloud) checkNotBegun(ctx context.Context, id string, zones ...string) error {
	for _, zone := range zones {
		inserts, err := c.running(ctx, zone, "insert")
		if err != nil {
			return err
		}
		for _, operation := range inserts {
			if pathOf(operation.TargetLink) == c.diskPath(zone, id) {
				return backend.InProgress.Errorf("disk %s is being made in zone %s (operation %s): waiting for it to be there", id, zone, operation.Name)
			}
		}
	}
	return nil
}

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
