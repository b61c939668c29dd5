package owner

import (
	"cmp"
	"context"
	"regexp"
	"slices"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/gce/cloud"
	"github.com/stowage-dev/stowage/internal/backend/gce/place"
)

// ValidID is what backend.VolumeID makes, as far as it is a name of a disk.
var ValidID = regexp.MustCompile(`^pvc-[a-z0-9-]{0,58}[a-z0-9]$`)

// FindDisk finds this owner's disk for a volume: nil where there is none.
func (o Owner) FindDisk(ctx context.Context, c *cloud.Client, id string) (*cloud.Disk, error) {
	if err := checkID(id); err != nil {
		return nil, err
	}
	found, err := c.DisksNamed(ctx, id)
	if err != nil {
		return nil, err
	}
	return o.PickDisk(found)
}

// FindAllDisks finds all of this owner's disks for a volume, with the used ones first. A list may lag behind, and show some of
// the disks that a volume has in each zone.
func (o Owner) FindAllDisks(ctx context.Context, c *cloud.Client, id string) ([]*cloud.Disk, error) {
	if err := checkID(id); err != nil {
		return nil, err
	}
	found, err := c.DisksNamed(ctx, id)
	if err == nil {
		found, err = c.Complete(ctx, id, found, place.Zones(ZonesOf(found, c.Zones)...)...)
	}
	if err != nil {
		return nil, err
	}
	if _, err := o.PickDisk(found); err != nil {
		return nil, err
	}
	own := o.ownDisks(found)
	slices.SortStableFunc(own, func(one, other *cloud.Disk) int { return cmp.Compare(len(other.Users), len(one.Users)) })
	return own, nil
}

func checkID(id string) error {
	if !ValidID.MatchString(id) {
		return backend.Conflict.Errorf("%q is no id of a volume: nothing is done for it", id)
	}
	return nil
}

// ListDisks lists the disks that are this owner's.
func (o Owner) ListDisks(ctx context.Context, c *cloud.Client) ([]*cloud.Disk, error) {
	found, err := c.Disks(ctx, o.Filter())
	return o.ownDisks(found), err
}

// FindSnapshot reads a snapshot or an image of the project, whichever program made it: nil where there is none.
func (o Owner) FindSnapshot(ctx context.Context, c *cloud.Client, handle string) (*cloud.Snapshot, error) {
	name, isImage, err := o.SnapshotName(handle, c.Project)
	if err != nil {
		return nil, err
	}
	return c.Snapshot(ctx, name, isImage)
}
