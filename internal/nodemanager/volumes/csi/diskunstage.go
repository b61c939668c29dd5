package csi

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/stowage-dev/stowage/internal/device/clouddisk"
	"github.com/stowage-dev/stowage/internal/mount"
)

// unstage takes away what is shown of a disk that no pod of the node has any more. One
// that isn't shown is a success.
func (d *Disks) unstage(ctx context.Context, volume string) error {
	if d == nil {
		return nil
	}
	place := d.at(volume)
	if _, err := os.Lstat(place.dir); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	release, err := d.acquire(ctx, volume)
	if err != nil {
		return err
	}
	defer release()
	record, err := place.record()
	if err != nil {
		return err
	}
	if record != nil {
		left, err := d.letGo(ctx, place, *record)
		if err != nil || left {
			return err
		}
	}
	return place.remove()
}

// letGo unmounts what no pod has any more, and says whether one has.
func (d *Disks) letGo(ctx context.Context, place diskPlace, record diskRecord) (left bool, err error) {
	users, err := d.usersOf(place)
	if err != nil {
		return false, err
	}
	disk, err := clouddisk.DiskAt(record.Disk)
	gone := errors.Is(err, clouddisk.ErrNoDisk) || errors.Is(err, clouddisk.ErrOtherDisk)
	if err != nil && !gone {
		return false, err
	}
	if disk != nil {
		defer disk.Close()
	}
	switch {
	case gone && len(users) == 0:
		return false, d.unmountBelow(nameOf(place), place.dir)
	case gone:
		return true, nil
	case len(users) > 0:
		return true, protectDisk(disk, record, users)
	}
	return false, d.takeDown(ctx, place, record, disk)
}

// takeDown unmounts a disk that no pod has, and proves that nothing of it is left.
func (d *Disks) takeDown(ctx context.Context, place diskPlace, record diskRecord, disk *clouddisk.Disk) error {
	// No half-made file system leaves this node: nobody else knows that it isn't data.
	if _, err := d.finishHalf(ctx, disk, place); err != nil {
		return err
	}
	if err := protectDisk(disk, record, nil); err != nil {
		return err
	}
	if err := d.unmountBelow(nameOf(place), place.dir); err != nil {
		return err
	}
	return refuseTaken(disk)
}

// refuseTaken is an error if a disk is mounted where the agent doesn't see it.
func refuseTaken(disk *clouddisk.Disk) error {
	taken, err := disk.IsTaken()
	if err == nil && taken {
		err = fmt.Errorf("the volume's disk %s is still mounted, in a place or a mount namespace that isn't the agent's: "+
			"it isn't let go before it is unmounted there: %w", disk.Path(), mount.ErrMounted)
	}
	return err
}

// protectDisk keeps a device from being written while no pod that has it may, as far as the
// attachment lets it be written at all. A file system's mount says by itself.
func protectDisk(disk *clouddisk.Disk, record diskRecord, users []mount.Point) error {
	if record.ForReaders || !record.Block {
		return nil
	}
	writes := slices.ContainsFunc(users, func(user mount.Point) bool { return user.Access == mount.ReadWrite })
	return disk.SetReadOnly(len(users) > 0 && !writes)
}

// usersOf is the mounts of pods that show a disk.
func (d *Disks) usersOf(place diskPlace) ([]mount.Point, error) {
	shown, err := d.mountedFor(place)
	return slices.DeleteFunc(shown, func(point mount.Point) bool {
		return point.Path == place.system || point.Path == place.node
	}), err
}
