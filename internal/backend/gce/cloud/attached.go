package cloud

import (
	"context"

	"google.golang.org/api/compute/v1"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/gce/place"
)

// AttachedTo returns the disk as it is attached to an instance that a node may be. It is nil where
// the disk isn't attached and no attach is in progress.
func (c *Client) AttachedTo(ctx context.Context, node backend.NodeIdentity, paths func(*Instance) []string) (*compute.AttachedDisk, error) {
	candidates, err := c.InstancesOf(ctx, node)
	if err != nil {
		return nil, err
	}
	for _, on := range candidates {
		if on.At.Project != c.Project {
			continue // a disk is attached within its project
		}
		if has, err := c.diskOn(ctx, on, paths(on)); has != nil || err != nil {
			return has, err
		}
	}
	return nil, nil
}

// diskOn returns a disk as it is attached to an instance. It reads the instance again after the
// operations: an operation that ended during the first read shows in neither.
func (c *Client) diskOn(ctx context.Context, on *Instance, paths []string) (*compute.AttachedDisk, error) {
	under := "attachDisk"
	if on.attachedDisk(paths...) != nil {
		under = "detachDisk"
	}
	operations, err := c.running(ctx, place.Zone(on.At.Zone), under)
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
	return now.attachedDisk(paths...), nil
}

// IsUsed reports whether any instance has a disk. An attach of any disk in its zones is InProgress.
func (c *Client) IsUsed(ctx context.Context, at place.Place, name string, zones ...string) (bool, error) {
	for _, zone := range zones {
		operations, err := c.running(ctx, place.Zone(zone), "attachDisk")
		switch {
		case err != nil:
			return false, err
		case len(operations) > 0:
			return false, backend.InProgress.Errorf("disks are being attached in zone %s (operation %s)", zone, operations[0].Name)
		}
	}
	found, err := c.Disk(ctx, at, name)
	return found != nil && len(found.Users) > 0, err
}
