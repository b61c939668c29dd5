package gce

import (
	"context"
	"regexp"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/gce/cloud"
)

// validID is what backend.VolumeID makes, as far as it is a name of a disk.
var validID = regexp.MustCompile(`^pvc-[a-z0-9-]{0,58}[a-z0-9]$`)

// ownDisk finds this backend's disk for a volume: nil where there is none.
func (b *gceBackend) ownDisk(ctx context.Context, c *cloud.Client, id string) (*cloud.Disk, error) {
	if !validID.MatchString(id) {
		return nil, backend.Conflict.Errorf("%q is no id of a volume: nothing is done for it", id)
	}
	found, err := c.DisksNamed(ctx, id)
	if err != nil {
		return nil, err
	}
	return b.owner.PickDisk(found)
}

// ownDisks lists the disks that are this backend's.
func (b *gceBackend) ownDisks(ctx context.Context, c *cloud.Client) ([]*cloud.Disk, error) {
	found, err := c.Disks(ctx, b.owner.Filter())
	return b.owner.OwnDisks(found), err
}
