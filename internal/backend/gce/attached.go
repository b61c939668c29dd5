package gce

import (
	"context"

	"google.golang.org/api/compute/v1"

	"github.com/stowage-dev/stowage/internal/backend"
)

// attachedTo finds how a disk is attached to the instances that a node may be; nil where
// it isn't, and isn't about to be.
func (c *cloud) attachedTo(ctx context.Context, node backend.NodeIdentity, path func(*instance) string) (*compute.AttachedDisk, error) {
	candidates, err := c.instancesOf(ctx, node)
	if err != nil {
		return nil, err
	}
	for _, on := range candidates {
		if on.at.project != c.project {
			continue // a disk is attached within its project
		}
		if has, err := c.diskOn(ctx, on, path(on)); has != nil || err != nil {
			return has, err
		}
	}
	return nil, nil
}

// diskOn finds how a disk is attached to an instance. The instance is read again after the
// operations: one that ended while it was read first was seen by neither.
func (c *cloud) diskOn(ctx context.Context, on *instance, path string) (*compute.AttachedDisk, error) {
	under := "attachDisk"
	if on.attachedDisk(path) != nil {
		under = "detachDisk"
	}
	operations, err := c.running(ctx, on.at.zone, under)
	if err != nil {
		return nil, err
	}
	for _, operation := range operations {
		if operation.TargetId == on.Id {
			return nil, backend.InProgress.Errorf("%s at instance %s goes on (operation %s)", under, on.at.name, operation.Name)
		}
	}
	now, err := c.instance(ctx, on.at)
	if now == nil || err != nil {
		return nil, err
	}
	return now.attachedDisk(path), nil
}

// isUsed reports whether any instance has a disk, or may be getting one in its zone.
func (c *cloud) isUsed(ctx context.Context, zone, name string) (bool, error) {
	operations, err := c.running(ctx, zone, "attachDisk")
	switch {
	case err != nil:
		return false, err
	case len(operations) > 0:
		return false, backend.InProgress.Errorf("disks are being attached in zone %s (operation %s)", zone, operations[0].Name)
	}
	found, err := c.disk(ctx, zone, name)
	return found != nil && len(found.Users) > 0, err
}
