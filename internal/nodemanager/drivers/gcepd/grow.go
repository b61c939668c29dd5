package gcepd

import (
	"context"
	"fmt"

	"github.com/stowage-dev/stowage/internal/device/filesystem"
	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/nodemanager/drivers/mounting"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

// Grow makes a disk that is visible at a path as large as it is in the cloud, and returns that
// size.
func (s *Driver) Grow(ctx context.Context, handle, path string) (int64, error) {
	folder, record, err := s.findAt(handle, path)
	if err != nil {
		return 0, fmt.Errorf("growing volume %s: %w", handle, err)
	}
	table, err := s.Mounter.Table()
	if err != nil {
		return 0, err
	}
	if staged, mounted := table.At(folder.system); mounted && staged.Access == mount.ReadOnly {
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
	if err := mounting.GrowSystem(ctx, s.Mounter, s.Systems, disk.Path(), folder.system); err != nil {
		return 0, err
	}
	return disk.Size()
}

// findAt reads the record of a disk that is visible at a path, or staged if the path is empty;
// volumes.ErrNotFound if it isn't there.
func (s *Driver) findAt(handle, path string) (stagedFolder, *diskRecord, error) {
	folder, record, err := s.find(handle)
	if err != nil {
		return folder, nil, err
	}
	table, err := s.Mounter.Table()
	if err != nil {
		return folder, nil, err
	}
	if record == nil || !folder.isShown(table, *record, path) {
		return folder, nil, fmt.Errorf("it isn't mounted at %q: %w", path, volumes.ErrNotFound)
	}
	return folder, record, nil
}

// isShown reports whether a disk is visible at a path, or staged if the path is empty.
func (p stagedFolder) isShown(table mount.Table, record diskRecord, path string) bool {
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

// Check returns volumes.ErrGone if the disk that is visible at a path is gone from the machine,
// also if it came back as another device. If its file system has failed, it returns another
// error.
func (s *Driver) Check(_ context.Context, handle, path string) error {
	folder, record, err := s.findAt(handle, path)
	if err != nil {
		return fmt.Errorf("checking volume %s: %w", handle, err)
	}
	table, err := s.Mounter.Table()
	if err != nil {
		return err
	}
	return checkDisk(table, folder.diskFolder, *record)
}

func checkDisk(table mount.Table, folder diskFolder, record diskRecord) error {
	there, err := record.Disk.IsThere()
	if err != nil {
		return err
	}
	if !there {
		return fmt.Errorf("%w, though it was mounted: what was written to it last may be lost: "+
			"it is mounted again once it is back, for pods that are started then", volumes.ErrGone)
	}
	staged, mounted := table.At(folder.system)
	if mounted && filesystem.HasStopped(staged) {
		return mounting.ErrReadOnly
	}
	return nil
}
