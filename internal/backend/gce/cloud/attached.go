package cloud

import (
	"context"

	"google.golang.org/api/compute/v1"

	"github.com/stowage-dev/stowage/internal/backend"
)

// AttachedTo returns the disk as it is attached to an instance that a node may be. It is nil where
// the disk isn't attached and no attach is in progress.
func (c *Client) AttachedTo(ctx context.Context, node backend.NodeIdentity, path func(*Instance) string) (*compute.AttachedDisk, error) {
	candidates, err := c.InstancesOf(ctx, node)
	if err != nil {
		return nil, err
	}
	for _, on := range candidates {
		if on.At.Project != c.Project {
			continue // a disk is attached within its project
		}
		if has, err := c.diskOn(ctx, on, path(on)); has != nil || err != nil {
			return has, err
		}
	}
	return nil, nil
}

// diskOn returns a disk as it is attached to an instance. It reads the instance again after the
// operations: an operation that ended during the first read shows in neither.
func (c *Client) diskOn(ctx context.Context, on *Instance, path string) (*compute.AttachedDisk, error) {
	under := "attachDisk"
	if on.attachedDisk(path) != nil {
		under = "detachDisk"
	}
	operations, err := c.running(ctx, on.At.Zone, under)
	if err != nil {
		return nil, err
	}
	for _, operation := range operations {
		if operation.TargetId == on.Id {
			return nil, backend.InProgress.Errorf("%s at instance %s goes on (operation %s)", under, on.At.Name, operation.Name)
		}
	}
	now, err := c.instance(ctx, on.At)
	if now == nil || err != nil {
		return nil, err
	}
	return now.attachedDisk(path), nil
}

// IsUsed reports whether any instance has a disk. An attach of any disk in the zone is InProgress.
func (c *Client) IsUsed(ctx context.Context, zone, name string) (bool, error) {
	operations, err := c.running(ctx, zone, "attachDisk")
	switch {
	case err != nil:
		return false, err
	case len(operations) > 0:
		return false, backend.InProgress.Errorf("disks are being attached in zone %s (operation %s)", zone, operations[0].Name)
	}
	found, err := c.Disk(ctx, zone, name)
	return found != nil && len(found.Users) > 0, err
}
