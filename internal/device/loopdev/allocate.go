package loopdev

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/stowage-dev/stowage/internal/device"
)

// noCopyOnWrite is the flag of files with blocks that are written in place: see
// ioctl_iflags(2).
const noCopyOnWrite = 0x00800000

// Allocate makes a file this many bytes long, and reserves disk space for all of them, read as
// zeros where nothing was written. It keeps the content, and never shortens a file. A file
// system that can't reserve space is ErrCannotAllocate, a full one ENOSPC: then the file is as
// long as it was.
func Allocate(file *os.File, bytes int64) error {
	info, err := file.Stat()
	if err != nil {
		return fmt.Errorf("asking for the size of %s: %w", file.Name(), err)
	}
	err = keepRoom(file, bytes)
	if err == nil {
		err = checkRoom(file, bytes)
	}
	if err == nil && bytes > info.Size() {
		err = file.Truncate(bytes)
	}
	if err == nil {
		return nil
	}
	// Room beyond the end, which is free once the end is set again.
	return errors.Join(fmt.Errorf("allocating %s: %w", file.Name(), err), file.Truncate(info.Size()))
}

// keepRoom reserves disk space for a file of this length, whatever its length is.
func keepRoom(file *os.File, bytes int64) error {
	for {
		err := unix.Fallocate(int(file.Fd()), unix.FALLOC_FL_KEEP_SIZE, 0, bytes)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS):
			return device.ErrCannotAllocate
		default:
			return err
		}
	}
}

// checkRoom finds file systems that report success and reserve nothing.
func checkRoom(file *os.File, bytes int64) error {
	taken, err := AllocatedBytes(file)
	if err == nil && taken < bytes {
		err = device.ErrCannotAllocate
	}
	return err
}

// AllocatedBytes is how much disk space is reserved for a file, or written. A crash in
// Allocate leaves more than the length of the file.
func AllocatedBytes(file *os.File) (int64, error) {
	var stat unix.Stat_t
	if err := unix.Fstat(int(file.Fd()), &stat); err != nil {
		return 0, fmt.Errorf("asking what %s takes up: %w", file.Name(), err)
	}
	return stat.Blocks * device.SectorBytes, nil
}

// IsAllocated reports whether disk space is reserved for all of a file. The count includes the
// file system's own blocks for the file, so it may miss a small hole.
func IsAllocated(file *os.File) (bool, error) {
	info, err := file.Stat()
	if err != nil {
		return false, fmt.Errorf("asking for the size of %s: %w", file.Name(), err)
	}
	err = checkRoom(file, info.Size())
	if errors.Is(err, device.ErrCannotAllocate) {
		return false, nil
	}
	return err == nil, err
}

// WriteInPlace has btrfs write a file, which must be empty, in place from now on; other file
// systems do so anyhow. Otherwise each write would need new space, which a full disk doesn't
// have, whatever was reserved.
func WriteInPlace(file *os.File) error {
	flags, err := unix.IoctlGetInt(int(file.Fd()), unix.FS_IOC_GETFLAGS)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(file.Fd()), unix.FS_IOC_SETFLAGS, flags|noCopyOnWrite)
	}
	for _, other := range []error{unix.ENOTTY, unix.EOPNOTSUPP, unix.EINVAL, unix.ENOSYS} {
		if errors.Is(err, other) {
			return nil
		}
	}
	if err != nil {
		return fmt.Errorf("asking for writes in place of %s: %w", file.Name(), err)
	}
	return nil
}
