package csi

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/stowage-dev/stowage/internal/device/clouddisk"
	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

// errOnlyToRead says that a disk can't be written that is to be.
var errOnlyToRead = errors.New("the volume's disk is attached to this node for reading only, and the volume is to be written: " +
	"give the volume access mode ReadOnlyMany alone, or have its disk attached for writing")

// publish makes the file system on a disk visible at target.
func (d *Disks) publish(ctx context.Context, spec volumes.Spec, target string) error {
	release, err := d.acquire(ctx, spec.Name())
	if err != nil {
		return err
	}
	defer release()
	disk, err := d.open(ctx, spec)
	if err != nil {
		return err
	}
	// From the mount on, that keeps the disk.
	defer disk.Close()
	place := d.at(spec.Name())
	if err := d.note(place, recordOf(spec, disk)); err != nil {
		return err
	}
	if err := d.stage(ctx, disk, spec, place); err != nil {
		return err
	}
	source, err := os.OpenFile(place.system, openOnly, 0)
	if err != nil {
		return err
	}
	defer source.Close()
	if err := give(ctx, d.owner, spec, source); err != nil {
		return err
	}
	return volumes.Bind(d.mounter, source, target, spec.Access)
}

// note remembers which disk is shown at a place, unless it is at another one, or
// another disk is. What is left of one that is gone is taken away first.
func (d *Disks) note(place diskPlace, wanted diskRecord) error {
	d.noting.Lock()
	defer d.noting.Unlock()
	if err := d.refuseShownElsewhere(place, wanted); err != nil {
		return err
	}
	earlier, err := place.record()
	if err != nil || earlier != nil && earlier.isSame(wanted) {
		return err
	}
	if earlier != nil {
		if err := d.dropGone(place, *earlier); err != nil {
			return err
		}
	}
	return place.write(place.recordFile(), wanted)
}

// refuseShownElsewhere refuses a disk that is shown for another volume object, which
// would be for the same storage: each would take the other for a pod that uses it. What
// would show it by mistake is taken away.
func (d *Disks) refuseShownElsewhere(place diskPlace, wanted diskRecord) error {
	places, err := d.places()
	if err != nil {
		return err
	}
	for _, other := range places {
		if other == place {
			continue
		}
		record, err := other.record()
		if err != nil {
			return err
		}
		switch {
		case record == nil:
		case record.Disk == wanted.Disk || record.name() == wanted.name():
			return fmt.Errorf("the disk is mounted for volume %s, which is another object for the same storage: use one of the two: %w",
				nameOf(other), mount.ErrMounted)
		case record.Block && record.Disk.Number == wanted.Disk.Number:
			// A device is opened by its number, and that was of a disk that was taken from
			// this node by force: its pods would open the disk that is wanted.
			if err := d.dropGone(other, *record); err != nil {
				return err
			}
		}
	}
	return nil
}

// stage mounts the file system on a disk, unless that was done before.
func (d *Disks) stage(ctx context.Context, disk *clouddisk.Disk, spec volumes.Spec, place diskPlace) error {
	table, err := d.mounter.Table()
	if err != nil {
		return err
	}
	staged, mounted := table.At(place.system)
	switch {
	case mounted && staged.Device != disk.Device():
		return fmt.Errorf("the disk of the volume is %s, and %s is mounted: %w", disk.Device(), staged.Device, volumes.ErrOtherVolume)
	case mounted:
		return nil
	}
	unused := len(table.Shows(disk.Device(), "/")) == 0
	system, err := d.systemOn(ctx, disk, spec, place)
	if err != nil {
		return err
	}
	// A pod's mount may be left of an earlier one: what is mounted is not for fsck.
	if system.Access == mount.ReadWrite && unused {
		if err := prepare(ctx, d.systems, system); err != nil {
			return err
		}
	}
	return mountSystem(ctx, d.mounter, d.systems, system, place.system)
}

// systemOn finds out what file system is to be mounted, and how. On a disk that is
// empty, it makes one.
func (d *Disks) systemOn(ctx context.Context, disk *clouddisk.Disk, spec volumes.Spec, place diskPlace) (mount.FileSystem, error) {
	volume, system := spec.PersistentVolume, mount.FileSystem{Source: disk.Path()}
	readOnly, err := disk.IsReadOnly()
	if err != nil {
		return system, err
	}
	switch {
	case isForReadersOnly(volume):
		system.Access = mount.ReadOnly
	case readOnly:
		return system, errOnlyToRead
	}
	if system.Access == mount.ReadOnly || isPart(volume) {
		system.Type, err = d.systemToKeep(ctx, disk)
	} else {
		system.Type, err = d.ensureSystem(ctx, disk, volume, place)
	}
	if err != nil {
		return system, err
	}
	setLabel(&system, d.owner, spec)
	err = setOptions(&system, volume.Spec.MountOptions)
	return system, err
}

// systemToKeep is the file system of a disk that nobody may format, because nobody may
// write it, or because it is a partition.
func (d *Disks) systemToKeep(ctx context.Context, disk *clouddisk.Disk) (string, error) {
	found, err := d.systems.Probe(ctx, disk.Path())
	if err == nil && found == "" {
		return "", errors.New("the volume's disk has no file system, and is for reading only, or is a partition: it isn't formatted")
	}
	return found, err
}
