package csi

import (
	"context"
	"fmt"

	"github.com/stowage-dev/stowage/internal/device/clouddisk"
	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

// canGrow says whether a disk is shown here, and may be written.
func (d *Disks) canGrow(table mount.Table, volume string) bool {
	place := d.at(volume)
	staged, mounted := table.At(place.system)
	if !mounted {
		staged, mounted = table.At(place.node)
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
	disk, err := clouddisk.DiskAt(record.Disk)
	if err != nil {
		return 0, fmt.Errorf("growing volume %s: %w", volume, err)
	}
	defer disk.Close()
	if err := disk.Rescan(); err != nil {
		return 0, err
	}
	if err := growSystem(ctx, d.mounter, d.systems, disk.Path(), place.system); err != nil {
		return 0, err
	}
	return disk.Size()
}
