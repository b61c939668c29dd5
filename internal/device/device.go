// Package device has what the packages of devices share: the kinds of their errors, and how an open
// file is named and opened again. Its packages are the only code in Stowage for loop devices and
// their images (loopdev), disks that were attached to the machine (clouddisk), and file systems
// (filesystem). Package mount mounts them.
//
// They know nothing of pods, volumes or Kubernetes' API.
package device

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// SectorBytes is the unit in which a loop device shows an image.
const SectorBytes = 512

// Kinds of errors.
var (
	// ErrAttached says that an image has a loop device.
	ErrAttached = errors.New("a loop device shows it")
	// ErrReserved says that an image can't be attached now.
	ErrReserved = errors.New("it is being copied or removed, and can't be used until that ends")
	// ErrInUse says that a loop device is still open.
	ErrInUse = errors.New("the loop device is in use")
	// ErrForeign says that another program attached an image in another way.
	ErrForeign = errors.New("the loop device isn't one of Stowage's")
	// ErrGone says that an image has no name any more: it is being removed.
	ErrGone = errors.New("the image was removed")
	// ErrCannotAllocate says that a file system can't keep room for a file.
	ErrCannotAllocate = errors.New("the file system can't keep room for a file")
	// ErrNoTool says that a program is missing on this node.
	ErrNoTool = errors.New("a program is missing")
	// ErrUnknownType says that Stowage doesn't make file systems of a type.
	ErrUnknownType = errors.New("not a type of file system that Stowage makes")
	// ErrTooSmall says that a type of file system needs more room.
	ErrTooSmall = errors.New("too small for the file system")
	// ErrFormatted says that there is data where a file system was to be made.
	ErrFormatted = errors.New("it holds data already")
	// ErrDamaged says that a file system has errors that need a person to repair.
	ErrDamaged = errors.New("the file system is damaged")
)

// PathOf is a path by which other programs open the very file that is open here,
// whatever became of its name. It is good as long as the file stays open.
func PathOf(file *os.File) string {
	return fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), file.Fd())
}

// Reopen opens the very file that is open here once more, which need not be readable. A flock and
// direct I/O belong to each opening on its own.
func Reopen(file *os.File, flags int) (*os.File, error) {
	fd, err := unix.Open("/proc/self/fd/"+strconv.Itoa(int(file.Fd())), flags|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "opening", Path: file.Name(), Err: err}
	}
	return os.NewFile(uintptr(fd), file.Name()), nil
}

// SetReadOnly makes the kernel refuse writes to a device, or accept them again.
func SetReadOnly(device *os.File, path string, readOnly bool) error {
	refuse := 0
	if readOnly {
		refuse = 1
	}
	if err := unix.IoctlSetPointerInt(int(device.Fd()), unix.BLKROSET, refuse); err != nil {
		return fmt.Errorf("saying whether %s can be written: %w", path, err)
	}
	return nil
}
