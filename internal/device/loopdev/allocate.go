package loopdev

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/stowage-dev/stowage/internal/device"
)

// noCopyOnWrite is the flag of files whose blocks are written in place: see
// ioctl_iflags(2).
const noCopyOnWrite = 0x00800000

// Allocate makes a file this many bytes long, and has the disk keep room for all of
// them, read as zeros where nothing was written. What the file holds stays, and a
// longer one stays as long. A file system that can't promise room is
// ErrCannotAllocate, a full one ENOSPC: then the file is as long as it was.
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
	// Room beyond the end, which is free again when the end is set anew.
	return errors.Join(fmt.Errorf("allocating %s: %w", file.Name(), err), file.Truncate(info.Size()))
}

// keepRoom has the disk keep room for a file of this length, whatever its length is.
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

// checkRoom is for file systems that say yes, and keep no room all the same.
func checkRoom(file *os.File, bytes int64) error {
	taken, err := AllocatedBytes(file)
	if err == nil && taken < bytes {
		err = device.ErrCannotAllocate
	}
	return err
}

// Taken is how many bytes of the disk are kept for a file, or written. That is more
// than its length where Allocate was cut off.
func AllocatedBytes(file *os.File) (int64, error) {
	var stat unix.Stat_t
	if err := unix.Fstat(int(file.Fd()), &stat); err != nil {
		return 0, fmt.Errorf("asking what %s takes up: %w", file.Name(), err)
	}
	return stat.Blocks * device.SectorBytes, nil
}

// IsAllocated says whether the disk keeps room for all of a file. Room for what
// describes the file counts too, so that a small hole may be missed.
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

// WriteInPlace has the file system write a file, which must be empty, in place
// from now on. Elsewhere than on btrfs that is so anyhow. There each write would
// need new room, which a full disk doesn't have, however much it kept.
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
