package csi

import (
	"context"
	"errors"
	"fmt"

	"github.com/stowage-dev/stowage/internal/device"
	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

// canGrow says whether a disk is shown here, and may be written.
func (d *Disks) canGrow(table mount.Table, volume string) bool {
	place := d.at(volume)
	staged, mounted := table.At(place.mount())
	if !mounted {
		staged, mounted = table.At(place.device())
	}
	return mounted && staged.Access == mount.ReadWrite
}

// grow reads the size of a disk anew, makes its file system as large as that, and
// returns it.
func (d *Disks) grow(ctx context.Context, volume string) (int64, error) {
	release, err := d.acquire(ctx, volume)
	if err != nil {
		return 0, err
	}
	defer release()
	place := d.at(volume)
	record, err := place.record()
	if err != nil {
		return 0, err
	}
	if record == nil {
		return 0, fmt.Errorf("growing volume %s: %w", volume, volumes.ErrGone)
	}
	disk, err := device.DiskAt(record.Disk)
	if err != nil {
		return 0, fmt.Errorf("growing volume %s: %w", volume, err)
	}
	defer disk.Close()
	if err := disk.Rescan(); err != nil {
		return 0, err
	}
	if err := d.growSystem(ctx, place, disk); err != nil {
		return 0, err
	}
	return disk.Size()
}

// growSystem grows the file system on a disk, if one is mounted.
func (d *Disks) growSystem(ctx context.Context, place diskPlace, disk *device.Disk) error {
	table, err := d.mounter.Table()
	if err != nil {
		return err
	}
	staged, mounted := table.At(place.mount())
	if !mounted {
		return nil
	}
	err = d.systems.Grow(ctx, disk.Path(), place.mount(), staged.FSType)
	if errors.Is(err, device.ErrUnknownType) {
		return fmt.Errorf("%w: %w", err, volumes.ErrNotSupported)
	}
	return err
}
