package newdisk

import (
	"context"
	"errors"

	"google.golang.org/api/compute/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/gce/accessmode"
	"github.com/stowage-dev/stowage/internal/backend/gce/cloud"
	"github.com/stowage-dev/stowage/internal/backend/gce/reason"
	"github.com/stowage-dev/stowage/internal/backend/gce/size"
	"github.com/stowage-dev/stowage/internal/backend/gce/storagepool"
	"github.com/stowage-dev/stowage/internal/backend/gce/tags"
)

// whyNotMade explains why the cloud refused to make a disk. It reads what the disk depends on after the call: an earlier call
// may have made the disk while that was there.
func (m Maker) whyNotMade(ctx context.Context, c *cloud.Client, plan Draft, disk *compute.Disk, refusal error) error {
	why := reason.Of(refusal)
	switch {
	case why == reason.Exists:
		if found, err := c.Disk(ctx, plan.At(), disk.Name); err == nil && found != nil {
			if _, foreign := m.Owner.CheckDisk(found); foreign != nil {
				return foreign
			}
		}
		return backend.InProgress.Errorf("disk %s exists by now: it is read again", disk.Name)
	case why == reason.KeyUnusable && plan.Request.Unwanted:
		return m.endUndo(ctx, c, plan, refusal)
	case why == reason.Forbidden && disk.Params != nil:
		return m.whyNotTagged(ctx, c, plan, disk, refusal)
	case why != reason.NotFound && why != reason.Invalid:
		return refusal
	}
	if plan.Request.Source != nil {
		if err := m.whyNotCopied(ctx, c, plan.Request, disk.SizeGb, refusal); !errors.Is(err, refusal) {
			return err
		}
	}
	return m.whyInvalid(ctx, c, plan, disk, refusal)
}

// whyInvalid explains why no disk like this can be.
func (m Maker) whyInvalid(ctx context.Context, c *cloud.Client, plan Draft, disk *compute.Disk, refusal error) error {
	why := reason.Of(refusal)
	switch {
	case disk.StoragePool != "" && !plan.Request.Unwanted:
		return m.whyNotInPool(ctx, c, plan.Class.Pools[plan.Zone], disk, refusal)
	case why == reason.Invalid && disk.AccessMode != "" && !plan.Request.Unwanted:
		return accessmode.WhyRefused(disk, refusal)
	case why == reason.NotFound && plan.Request.Source == nil:
		return backend.Invalid.Errorf("there is no %s, or no type %s in it: correct gce.zones, gce.diskType or the type of the StorageClass: %w",
			plan.At(), cloud.NameOf(disk.Type), refusal)
	}
	return refusal
}

// whyNotTagged explains that an insert of a disk with tags was forbidden.
func (m Maker) whyNotTagged(ctx context.Context, c *cloud.Client, plan Draft, disk *compute.Disk, refusal error) error {
	if !plan.Request.Unwanted {
		return tags.WhyRefused(disk, refusal)
	}
	return m.endUndo(ctx, c, plan, refusal)
}

// endUndo ends an undo, though its repeat of the insert is refused for a reason that may pass: no earlier insert is under
// way, and none made the disk.
func (m Maker) endUndo(ctx context.Context, c *cloud.Client, plan Draft, refusal error) error {
	if err := c.CheckNoInsert(ctx, plan.Request.ID, plan.At()); err != nil {
		return err
	}
	switch found, err := c.Disk(ctx, plan.At(), plan.Request.ID); {
	case err != nil:
		return err
	case found != nil:
		return backend.InProgress.Errorf("disk %s exists by now: it is read again", plan.Request.ID)
	}
	return backend.Invalid.Errorf("disk %s was never made: %w", plan.Request.ID, refusal)
}

// whyNotInPool explains why the cloud refused to make a disk in a storage pool.
func (m Maker) whyNotInPool(ctx context.Context, c *cloud.Client, in storagepool.Pool, disk *compute.Disk, refusal error) error {
	found, err := c.StoragePool(ctx, in.Project, in.Zone, in.Name)
	if err != nil {
		return backend.Unavailable.Errorf("the Compute API refused a disk in storage pool %s, and reading the pool failed (%w): %w", in.Path(), err, refusal)
	}
	return storagepool.WhyRefused(found, disk, refusal)
}

// WhyNotGrown explains why the cloud refused to grow a disk: its storage pool may be full.
func (m Maker) WhyNotGrown(ctx context.Context, c *cloud.Client, found *cloud.Disk, capacity resource.Quantity, refusal error) error {
	in, has := storagepool.OfPath(cloud.PathOf(found.StoragePool))
	if !has || reason.Of(refusal) != reason.Invalid {
		return refusal
	}
	pool, err := c.StoragePool(ctx, in.Project, in.Zone, in.Name)
	if err != nil {
		return backend.Unavailable.Errorf("the Compute API refused to grow disk %s, and reading its storage pool %s failed (%w): %w", found.Name, in.Path(), err, refusal)
	}
	return storagepool.WhyNotGrown(pool, found.Disk, size.InGib(capacity)-found.SizeGb, refusal)
}

// whyNotCopied explains why the cloud refused to make a copy. It is asked after the call: an earlier one
// may have made the copy while its source was there.
func (m Maker) whyNotCopied(ctx context.Context, c *cloud.Client, request backend.Request, sizeGb int64, refusal error) error {
	if request.Source.Snapshot == "" {
		_, err := m.OriginOf(ctx, c, request)
		if err == nil {
			err = refusal
		}
		return err
	}
	found, err := m.Owner.FindSnapshot(ctx, c, request.Source.Snapshot)
	switch {
	case err != nil:
		return err
	case found == nil:
		return errNoOrigin("snapshot " + request.Source.Snapshot)
	case found.DiskSizeGb > sizeGb:
		return backend.Invalid.Errorf("snapshot %s is of a disk with %dGi: ask for at least as much", request.Source.Snapshot, found.DiskSizeGb)
	}
	return refusal
}
