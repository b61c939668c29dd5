package gce

import (
	"context"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/gce/cloud"
	"github.com/stowage-dev/stowage/internal/backend/gce/owner"
)

// Delete removes the volume's disk, in whatever place it is.
func (b *gceBackend) Delete(ctx context.Context, id string) error {
	_, err := inCloud(ctx, b, "deleting volume "+id, func(c *cloud.Client) (any, error) { return nil, b.delete(ctx, c, id) })
	return err
}

// delete removes each of our disks with that name: there may be two if the backend's zones changed
// during a call. It begins with those that are shown as used: of a volume that can't go, all is left.
func (b *gceBackend) delete(ctx context.Context, c *cloud.Client, id string) error {
	if !owner.ValidID.MatchString(id) {
		return backend.Conflict.Errorf("%q is no id of a volume: nothing is deleted for it", id)
	}
	found, err := b.owner.FindAllDisks(ctx, c, id)
	if err != nil {
		return err
	}
	zones := owner.ZonesOf(found, c.Zones)
	if len(found) == 0 {
		zones = c.Zones
	}
	if len(zones) > 0 {
		// A disk that was being inserted during the first read may be there now.
		if err := c.CheckNoInsertNear(ctx, id, zones...); err != nil {
			return err
		}
		if found, err = b.owner.FindAllDisks(ctx, c, id); err != nil {
			return err
		}
	}
	for _, one := range found {
		if err := c.DeleteDisk(ctx, one); err != nil {
			return err
		}
	}
	return nil
}
