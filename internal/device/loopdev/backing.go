package loopdev

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// ImageOf opens the backing file of the loop device at a path, to identify and to mount it;
// nil for any other device. A file without a name is an error.
func ImageOf(path string) (*os.File, error) {
	var stat unix.Stat_t
	if err := unix.Stat(path, &stat); err != nil {
		return nil, &os.PathError{Op: "looking at", Path: path, Err: err}
	}
	if stat.Mode&unix.S_IFMT != unix.S_IFBLK {
		return nil, nil
	}
	name, err := os.ReadFile(fmt.Sprintf("/sys/dev/block/%d:%d/loop/backing_file", unix.Major(stat.Rdev), unix.Minor(stat.Rdev)))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("asking which file %s shows: %w", path, err)
	}
	image, err := os.OpenFile(strings.TrimSuffix(string(name), "\n"), unix.O_PATH|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, fmt.Errorf("opening the file that %s shows: %w", path, err)
	}
	// The name may be another file's by now.
	shows, err := IsBackedBy(path, image)
	if err == nil && !shows {
		err = fmt.Errorf("%s shows a file that was %s once: find out where that is, or detach the device (losetup --detach %s)", path, image.Name(), path)
	}
	if err != nil {
		image.Close()
		return nil, err
	}
	return image, nil
}

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
