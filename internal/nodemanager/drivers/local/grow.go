package local

import (
	"context"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/stowage-dev/stowage/internal/device/filesystem"
	"github.com/stowage-dev/stowage/internal/device/loopdev"
	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/nodemanager/drivers/mounting"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

// Grow makes a volume that is visible at a path as large as its image, and returns that size. A
// directory needs no growth: Grow returns its current limit.
func (s *Driver) Grow(ctx context.Context, handle, path string) (int64, error) {
	record, table, err := s.findAt(handle, path)
	if err != nil {
		return 0, fmt.Errorf("growing volume %s: %w", handle, err)
	}
	if !record.Image {
		return sizeOf(record.Staging)
	}
	if staged, mounted := table.At(record.Staging); mounted && staged.Access == mount.ReadOnly {
		return 0, fmt.Errorf("growing volume %s: its file system is mounted for reading only: %w", handle, volumes.ErrNotSupported)
	}
	loop, err := s.loopOf(record, table, record.Staging)
	if err != nil {
		return 0, err
	}
	if loop == nil {
		return 0, fmt.Errorf("growing volume %s: %w", handle, errLoopDetached)
	}
	defer loop.Close()
	if err := loop.Resize(); err != nil {
		return 0, err
	}
	if err := mounting.GrowSystem(ctx, s.images.mounter, s.images.systems, loop.Path(), record.Staging); err != nil {
		return 0, err
	}
	return loop.Size()
}

// sizeOf returns how many bytes a directory may have. If it has a limit, statfs reports that,
// rounded down to whole blocks.
func sizeOf(path string) (int64, error) {
	var system unix.Statfs_t
	if err := unix.Statfs(path, &system); err != nil {
		return 0, &os.PathError{Op: "asking for the size of", Path: path, Err: err}
	}
	return int64(system.Blocks+1)*system.Bsize - 1, nil
}

// findAt reads the record of a volume that is visible at a path, or staged if the path is empty;
// volumes.ErrNotFound if it isn't there.
func (s *Driver) findAt(handle, path string) (*stagedLocal, mount.Table, error) {
	record, err := s.records.Find(handle)
	if err != nil {
		return nil, nil, err
	}
	table, err := s.images.mounter.Table()
	if err != nil {
		return nil, nil, err
	}
	if record == nil || !record.isAt(table, path) {
		return nil, nil, fmt.Errorf("it isn't mounted at %q: %w", path, volumes.ErrNotFound)
	}
	return record, table, nil
}

// isAt reports whether the volume is staged, and visible at a path unless that is empty. It
// doesn't check which image a device shows: checkDevice does.
func (r stagedLocal) isAt(table mount.Table, path string) bool {
	if r.Block {
		staged := table.IsMountPoint(ImageFolder(r.Staging).image())
		return staged && (path == "" || path == r.Staging || table.IsMountPoint(path))
	}
	staged, mounted := table.At(r.Staging)
	if path == "" || !mounted {
		return mounted
	}
	seen, there := table.At(path)
	return there && seen.Device == staged.Device && seen.Root == staged.Root
}

// Check returns why a volume that is visible at a path is abnormal.
func (s *Driver) Check(_ context.Context, handle, path string) error {
	record, table, err := s.findAt(handle, path)
	if err != nil {
		return fmt.Errorf("checking volume %s: %w", handle, err)
	}
	if record.Block {
		return s.checkDevice(table, ImageFolder(record.Staging), path)
	}
	staged, _ := table.At(record.Staging)
	switch {
	case staged.RootDeleted:
		return errRemovedDirectory
	case !record.Image:
		return nil
	case filesystem.HasStopped(staged):
		return mounting.ErrReadOnly
	}
	return s.checkImage(record.Path, staged.Device)
}

// checkDevice returns an error if the image of a device was removed, or a pod's device shows
// something else.
func (s *Driver) checkDevice(table mount.Table, at ImageFolder, path string) error {
	if err := at.check(table); err != nil {
		return err
	}
	if path == "" || path == string(at) {
		return nil
	}
	return at.checkDevice(path)
}

// checkImage returns an error if a file system is mounted from a file that isn't the image in the
// volume's directory any more.
func (s *Driver) checkImage(path, number string) error {
	image, err := s.local.openImage(path)
	if errors.Is(err, os.ErrNotExist) {
		return errRemoved
	}
	if err != nil {
		return err
	}
	defer image.Close()
	loop, err := loopdev.LoopAt(number)
	if err != nil {
		return err
	}
	if loop == nil {
		return errLoopDetached
	}
	defer loop.Close()
	shows, err := loopdev.IsBackedBy(loop.Path(), image)
	if err == nil && !shows {
		err = errRemoved
	}
	return err
}
