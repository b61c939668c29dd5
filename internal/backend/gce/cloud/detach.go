package cloud

import (
	"context"
	"fmt"

	"google.golang.org/api/compute/v1"

	"github.com/stowage-dev/stowage/internal/backend"
)

// SettledDisk finds how a disk is attached to an instance, once nothing is about to be;
// nil where it isn't. The instance is the one that it was found on.
func (c *Client) SettledDisk(ctx context.Context, on *Instance, path string) (*Instance, *compute.AttachedDisk, error) {
	if has := on.attachedDisk(path); has != nil {
		return on, has, nil
	}
	if err := c.awaitOperations(ctx, on, "attachDisk"); err != nil {
		return nil, nil, err
	}
	on, err := c.instance(ctx, on.At)
	if on == nil || err != nil {
		return nil, nil, err
	}
	has := on.attachedDisk(path)
	return on, has, nil
}

// NotShown is the error for a disk that an instance has and the project doesn't show.
func DiskNotListed(path string, on *Instance) error {
	return backend.NotReady.Errorf("disk %s is attached to instance %s, and isn't shown: it is looked for again", path, on.At.Name)
}

// DetachDisk takes a disk from an instance that has it as a device.
func (c *Client) DetachDisk(ctx context.Context, found *Disk, from *Instance, device string) error {
	isGone := func(ctx context.Context) (bool, error) {
		now, err := c.instance(ctx, from.At)
		return err == nil && (now == nil || now.attachedDisk(found.Path()) == nil), err
	}
	err := c.do(ctx, change{
		doing: fmt.Sprintf("detaching disk %s from instance %s", found.Path(), from.At.Name),
		zone:  from.At.Zone,
		basis: append([]string{"detach", device}, attachBasis(found, from)...),
		send: func(ctx context.Context, requestID string) (*compute.Operation, error) {
			return c.compute.Instances.DetachDisk(from.At.Project, from.At.Zone, from.At.Name, device).RequestId(requestID).Context(ctx).Do()
		},
		isSeen: isGone,
	})
	switch known := ReasonOf(err); known {
	case NotFound, invalid:
		// The instance or the device went away meanwhile, or something else is wrong.
		gone, unknown := isGone(ctx)
		if gone || unknown != nil {
			return unknown
		}
	case inUse, notReady:
		return backend.NotReady.Errorf("disk %s can't be detached from instance %s yet: it is tried again: %w", found.Path(), from.At.Name, err)
	}
	return err
}

// settle waits until the operations of a type that are under way at an instance have
// ended. They don't say which disk they are about. Whoever calls reads the instance after
// that: what ended while it was asked for was seen by neither.
func (c *Client) awaitOperations(ctx context.Context, on *Instance, operationType string) error {
	under, err := c.running(ctx, on.At.Zone, operationType)
	if err != nil {
		return err
	}
	for _, operation := range under {
		if operation.TargetId != on.Id {
			continue
		}
		about := change{doing: operationType + " at instance " + on.At.Name, zone: on.At.Zone}
		if _, err := c.await(ctx, about, operation); err != nil {
			return err
		}
	}
	return nil
}
