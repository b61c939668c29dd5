package loopdev

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// IsBackedBy reports whether an image backs the loop device at a path. It doesn't attach the
// device, and doesn't wake programs that watch for writers. It is false for a partition.
func IsBackedBy(path string, image *os.File) (bool, error) {
	var stat unix.Stat_t
	if err := unix.Fstat(int(image.Fd()), &stat); err != nil {
		return false, fmt.Errorf("asking for the inode of %s: %w", image.Name(), err)
	}
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return false, &os.PathError{Op: "opening", Path: path, Err: err}
	}
	opened := os.NewFile(uintptr(fd), path)
	defer opened.Close()
	// The kernel answers for a partition what it answers for the whole device.
	if number, err := numberOfDevice(opened); err != nil || kernelsSysfs.loopAt(number) == "" {
		return false, nil
	}
	info, err := unix.IoctlLoopGetStatus64(fd)
	if errors.Is(err, unix.ENXIO) || errors.Is(err, unix.ENOTTY) {
		return false, nil // it shows nothing, or is no loop device
	}
	if err != nil {
		return false, fmt.Errorf("asking what %s shows: %w", path, err)
	}
	return (*status)(info).backing() == identityOf(stat), nil
}
