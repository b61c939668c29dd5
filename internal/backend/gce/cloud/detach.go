package cloud

import (
	"context"
	"fmt"

	"google.golang.org/api/compute/v1"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/gce/place"
	"github.com/stowage-dev/stowage/internal/backend/gce/reason"
)

// SettledDisk returns a disk as it is attached to an instance, after attaches in progress ended;
// nil where it isn't attached. It also returns the instance as it was read last.
func (c *Client) SettledDisk(ctx context.Context, on *Instance, paths ...string) (*Instance, *compute.AttachedDisk, error) {
	if has := on.attachedDisk(paths...); has != nil {
		return on, has, nil
	}
	if err := c.awaitOperations(ctx, on, "attachDisk"); err != nil {
		return nil, nil, err
	}
	on, err := c.instance(ctx, on.At)
	if on == nil || err != nil {
		return nil, nil, err
	}
	has := on.attachedDisk(paths...)
	return on, has, nil
}

// DiskNotListed is the error for a disk that an instance has and that can't be read.
func DiskNotListed(path string, on *Instance) error {
	return backend.NotReady.Errorf("disk %s is attached to instance %s, and can't be read: it is read again", path, on.At.Name)
}

// DetachDisk detaches a disk from an instance that has it as a device.
func (c *Client) DetachDisk(ctx context.Context, found *Disk, from *Instance, device string) error {
	isGone := func(ctx context.Context) (bool, error) {
		now, err := c.instance(ctx, from.At)
		return err == nil && (now == nil || now.attachedDisk(found.Path()) == nil), err
	}
	err := c.do(ctx, change{
		doing: fmt.Sprintf("detaching disk %s from instance %s", found.Path(), from.At.Name),
		at:    place.Zone(from.At.Zone),
		basis: append([]string{"detach", device}, attachBasis(found, from)...),
		send: func(ctx context.Context, requestID string) (*compute.Operation, error) {
			return c.compute.Instances.DetachDisk(from.At.Project, from.At.Zone, from.At.Name, device).RequestId(requestID).Context(ctx).Do()
		},
		isSeen: isGone,
	})
	switch known := reason.Of(err); known {
	case reason.NotFound, reason.Invalid:
		// The instance or the device may have gone since the read.
		gone, unknown := isGone(ctx)
		if gone || unknown != nil {
			return unknown
		}
	case reason.InUse, reason.NotReady:
		return backend.NotReady.Errorf("disk %s can't be detached from instance %s yet: it is tried again: %w", found.Path(), from.At.Name, err)
	}
	return err
}

// awaitOperations waits until the operations of a type at an instance have ended. They don't say
// which disk they are about. The caller reads the instance after that: an operation that ended
// during an earlier read shows in neither.
func (c *Client) awaitOperations(ctx context.Context, on *Instance, operationType string) error {
	under, err := c.running(ctx, place.Zone(on.At.Zone), operationType)
	if err != nil {
		return err
	}
	for _, operation := range under {
		if operation.TargetId != on.Id {
			continue
		}
		about := change{doing: operationType + " at instance " + on.At.Name, at: place.Zone(on.At.Zone)}
		if _, err := c.await(ctx, about, operation); err != nil {
			return err
		}
	}
	return nil
}
