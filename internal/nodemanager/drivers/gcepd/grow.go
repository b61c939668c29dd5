package gcepd

import (
	"context"
	"fmt"

	"github.com/stowage-dev/stowage/internal/device/filesystem"
	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/nodemanager/drivers/mounting"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

// Grow makes a disk that is visible at a path as large as the cloud has it, and returns
// that size.
func (s *Driver) Grow(ctx context.Context, handle, path string) (int64, error) {
	place, record, err := s.findAt(handle, path)
	if err != nil {
		return 0, fmt.Errorf("growing volume %s: %w", handle, err)
	}
	table, err := s.Mounter.Table()
	if err != nil {
		return 0, err
	}
	if staged, mounted := table.At(place.system); mounted && staged.Access == mount.ReadOnly {
		return 0, fmt.Errorf("growing volume %s: its file system is mounted for reading only: %w", handle, volumes.ErrNotSupported)
	}
	disk, err := openStaged(*record)
	if err != nil {
		return 0, fmt.Errorf("growing volume %s: %w", handle, err)
	}
	defer disk.Close()
	if err := disk.Rescan(); err != nil {
		return 0, err
	}
	if err := mounting.GrowSystem(ctx, s.Mounter, s.Systems, disk.Path(), place.system); err != nil {
		return 0, err
	}
	return disk.Size()
}

// findAt finds what is known of a disk that is visible at a path, or where it is staged if
// none is given; volumes.ErrNotFound if it isn't there.
func (s *Driver) findAt(handle, path string) (stagedPlace, *diskRecord, error) {
	place, record, err := s.find(handle)
	if err != nil {
		return place, nil, err
	}
	table, err := s.Mounter.Table()
	if err != nil {
		return place, nil, err
	}
	if record == nil || !place.isShown(table, *record, path) {
		return place, nil, fmt.Errorf("it isn't mounted at %q: %w", path, volumes.ErrNotFound)
	}
	return place, record, nil
}

// isShown says whether a disk is staged, and visible at a path if one is given.
func (p stagedPlace) isShown(table mount.Table, record diskRecord, path string) bool {
	if path == "" || path == p.Staging {
		path = p.Staging
		if record.Block {
			path = p.node
		}
	}
	point, mounted := table.At(path)
	if record.Block {
		return mounted && mounting.NumberAt(path) == record.Disk.Number
	}
	return mounted && point.Device == record.Disk.Number
}

// Check is volumes.ErrGone if the disk that is visible at a path is gone from the machine,
// also if it came back as another device, and another error if its file system has failed.
func (s *Driver) Check(_ context.Context, handle, path string) error {
	place, record, err := s.findAt(handle, path)
	if err != nil {
		return fmt.Errorf("checking volume %s: %w", handle, err)
	}
	table, err := s.Mounter.Table()
	if err != nil {
		return err
	}
	return checkDisk(table, place.diskFolder, *record)
}

func checkDisk(table mount.Table, place diskFolder, record diskRecord) error {
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
		return mounting.ErrReadOnly
	}
	return nil
}
