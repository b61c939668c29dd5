package csi

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/stowage-dev/stowage/internal/device/filesystem"
	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

// detaching is a Mounter that takes away also what is in use.
type detaching struct{ DiskMounter }

func (d detaching) Unmount(path string) error { return d.Detach(path) }

// nameOf is the volume of a place.
func nameOf(place diskPlace) string { return filepath.Base(place.dir) }

// isShown says whether a disk that a pod sees is also shown at its place: nothing may
// have been taken away there by hand. The error is one of check's.
func (d *Disks) isShown(table mount.Table, spec volumes.Spec) (bool, error) {
	if err := d.check(table, spec.Name()); err != nil {
		return true, err
	}
	place := d.at(spec.Name())
	if spec.IsBlock() {
		return table.IsMountPoint(place.node), nil
	}
	return table.IsMountPoint(place.system), nil
}

// check is volumes.ErrGone if the disk of a volume is gone from the machine, also if it
// came back as another device, and another error if its file system has failed.
func (d *Disks) check(table mount.Table, volume string) error {
	place := d.at(volume)
	record, err := place.record()
	if record == nil || err != nil {
		return err
	}
	return checkDisk(table, place, *record)
}

func checkDisk(table mount.Table, place diskPlace, record diskRecord) error {
	there, err := record.Disk.IsThere()
	if err != nil {
		return err
	}
	if !there {
		return fmt.Errorf("%w, though it was mounted: what was written to it last may be lost: "+
			"it is mounted again once it is back, for pods that are started then", volumes.ErrGone)
	}
	staged, mounted := table.At(place.system)
	if mounted && filesystem.HasStopped(staged) {
		return errReadOnly
	}
	return nil
}

// isGone says whether the disk of a volume was shown, and is gone.
func (d *Disks) isGone(volume string) (bool, error) {
	record, err := d.at(volume).record()
	if record == nil || err != nil {
		return false, err
	}
	there, err := record.Disk.IsThere()
	return !there, err
}

// dropGone takes away what is left of a disk that is gone, also in pods'. One that is
// there may be written through what is mounted, and is an error.
func (d *Disks) dropGone(place diskPlace, record diskRecord) error {
	left, err := d.mountedFor(place)
	if err != nil || len(left) == 0 {
		return err
	}
	there, err := record.Disk.IsThere()
	if err != nil {
		return err
	}
	if there {
		return fmt.Errorf("another disk is mounted for a volume of the same name: delete the pods of this node that use it: %w", mount.ErrMounted)
	}
	var refused []error
	for _, point := range left {
		refused = append(refused, d.mounter.Detach(point.Path))
	}
	return errors.Join(refused...)
}

// mountedFor is what is mounted at a place, and for its volume in pods' directories.
// It goes by the names: the number of a disk that went may be another one's by now. The
// names of volumes of other types are chosen by pods, and say nothing.
func (d *Disks) mountedFor(place diskPlace) ([]mount.Point, error) {
	table, err := d.mounter.Table()
	if err != nil {
		return nil, err
	}
	inPod := "/" + volumes.DirName(pluginName) + "/" + nameOf(place) + "/"
	var found []mount.Point
	for _, point := range table.Below(filepath.Dir(d.folder)) {
		path := point.Path + "/"
		if strings.HasPrefix(path, place.dir+"/") || strings.Contains(path, inPod) {
			found = append(found, point)
		}
	}
	return found, nil
}

// unmountBelow unmounts what a pod sees of a volume. What is in use stays, unless its
// disk is gone: then nothing can be written to it any more.
func (d *Disks) unmountBelow(volume, path string) error {
	err := mount.UnmountBelow(d.mounter, path)
	if err == nil {
		return nil
	}
	gone, goneErr := d.isGone(volume)
	if goneErr != nil || !gone {
		return errors.Join(err, goneErr)
	}
	return mount.UnmountBelow(detaching{d.mounter}, path)
}
