package gce

import (
	"context"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/gce/cloud"
)

// detach takes the disk from the node's instance, whatever the guest does with it.
func (b *gceBackend) detach(ctx context.Context, c *cloud.Client, id string, node backend.NodeIdentity) error {
	candidates, err := c.InstancesOf(ctx, node)
	if err != nil {
		return err
	}
	for _, from := range candidates {
		if from.At.Project != c.Project {
			continue // a disk is attached within its project
		}
		if err := b.detachFrom(ctx, c, id, from); err != nil {
			return err
		}
	}
	return nil
}

// detachFrom detaches the disk from an instance. An operation that attaches a disk shows on the
// instance only at its end.
func (b *gceBackend) detachFrom(ctx context.Context, c *cloud.Client, id string, from *cloud.Instance) error {
	path := c.DiskPath(from.At.Zone, id)
	from, has, err := c.SettledDisk(ctx, from, path)
	if err != nil || has == nil {
		return err
	}
	found, err := c.Disk(ctx, from.At.Zone, id)
	switch {
	case err != nil:
		return err
	case found == nil:
		return cloud.DiskNotListed(path, from)
	}
	if _, err := b.checkOwner(found); err != nil {
		return err
	}
	return c.DetachDisk(ctx, found, from, has.DeviceName)
}
