package gce

import (
	"context"
	"fmt"

	"google.golang.org/api/compute/v1"

	"github.com/stowage-dev/stowage/internal/backend"
)

// settledDisk finds how a disk is attached to an instance, once nothing is about to be;
// nil where it isn't. The instance is the one that it was found on.
func (c *cloud) settledDisk(ctx context.Context, on *instance, path string) (*instance, *compute.AttachedDisk, error) {
	if has := on.attachedDisk(path); has != nil {
		return on, has, nil
	}
	if err := c.settle(ctx, on, "attachDisk"); err != nil {
		return nil, nil, err
	}
	on, err := c.instance(ctx, on.at)
	if on == nil || err != nil {
		return nil, nil, err
	}
	has := on.attachedDisk(path)
	return on, has, nil
}

func notShown(path string, on *instance) error {
	return backend.NotReady.Errorf("disk %s is attached to instance %s, and isn't shown: it is looked for again", path, on.at.name)
}

func (c *cloud) detachDisk(ctx context.Context, found *disk, from *instance, device string) error {
	isGone := func(ctx context.Context) (bool, error) {
		now, err := c.instance(ctx, from.at)
		return err == nil && (now == nil || now.attachedDisk(found.path()) == nil), err
	}
	err := c.make(ctx, change{
		doing: fmt.Sprintf("detaching disk %s from instance %s", found.path(), from.at.name),
		zone:  from.at.zone,
		basis: append([]string{"detach", device}, standing(found, from)...),
		ask: func(ctx context.Context, requestID string) (*compute.Operation, error) {
			return c.compute.Instances.DetachDisk(from.at.project, from.at.zone, from.at.name, device).RequestId(requestID).Context(ctx).Do()
		},
		isSeen: isGone,
	})
	switch known := reasonOf(err); known {
	case notFound, invalid:
		// The instance or the device went away meanwhile, or something else is wrong.
		gone, unknown := isGone(ctx)
		if gone || unknown != nil {
			return unknown
		}
	case inUse, notReady:
		return backend.NotReady.Errorf("disk %s can't be detached from instance %s yet: it is tried again: %w", found.path(), from.at.name, err)
	}
	return err
}

// settle waits until the operations of a type that are under way at an instance have
// ended. They don't say which disk they are about. Whoever calls reads the instance after
// that: what ended while it was asked for was seen by neither.
func (c *cloud) settle(ctx context.Context, on *instance, operationType string) error {
	under, err := c.running(ctx, on.at.zone, operationType)
	if err != nil {
		return err
	}
	for _, operation := range under {
		if operation.TargetId != on.Id {
			continue
		}
		about := change{doing: operationType + " at instance " + on.at.name, zone: on.at.zone}
		if _, err := c.await(ctx, about, operation); err != nil {
			return err
		}
	}
	return nil
}
