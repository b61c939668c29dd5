package loopdev

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/stowage-dev/stowage/internal/device"
)

// identity is what a file is known by while it exists.
type identity struct{ device, inode uint64 }

func identityOf(stat unix.Stat_t) identity {
	return identity{device: stat.Dev, inode: stat.Ino}
}

// Find finds the loop device of an image and opens it, or returns nil. While it is
// open it shows this image: the kernel takes away no device that is open. One that
// somebody else attached, that shows only a part or can't be written, is ErrForeign.
func Find(image *os.File) (*Loop, error) {
	var stat unix.Stat_t
	if err := unix.Fstat(int(image.Fd()), &stat); err != nil {
		return nil, fmt.Errorf("asking for the inode of %s: %w", image.Name(), err)
	}
	attached, err := kernelsSysfs.attached()
	if err != nil {
		return nil, err
	}
	for _, name := range attached {
		loop, err := openIfShows(name, identityOf(stat))
		if loop != nil || err != nil {
			return loop, err
		}
	}
	return nil, nil
}

// openIfShows opens a loop device, if it shows a file; else it returns nil.
func openIfShows(name string, wanted identity) (*Loop, error) {
	// Not for writing: each close after that has udev look at the device.
	loop, err := openLoop(name, unix.O_RDONLY)
	if errors.Is(err, unix.ENXIO) || errors.Is(err, os.ErrNotExist) && !isAttached(name) {
		return nil, nil // it is going away just now
	}
	if err != nil {
		return nil, err
	}
	status, err := loop.status()
	if err == nil && status != nil && status.shows() == wanted {
		if err = status.refuseForeign(loop.Path()); err == nil {
			return loop, nil
		}
	}
	loop.Close()
	return nil, err
}

func isAttached(name string) bool {
	_, err := os.Stat("/sys/block/" + name + "/loop")
	return err == nil
}

// status is what the kernel tells of a loop device.
type status unix.LoopInfo64

func (s *status) shows() identity { return identity{device: s.Device, inode: s.Inode} }

func (s *status) refuseForeign(path string) error {
	if s.Offset != 0 || s.Sizelimit != 0 || s.Flags&unix.LO_FLAGS_READ_ONLY != 0 {
		return fmt.Errorf("%s shows only a part of the image, or can't be written: %w: detach it (losetup --detach %s)", path, device.ErrForeign, path)
	}
	return nil
}

// status asks what a loop device shows; nil if it shows nothing.
func (l *Loop) status() (*status, error) {
	info, err := unix.IoctlLoopGetStatus64(int(l.file.Fd()))
	if errors.Is(err, unix.ENXIO) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("asking what %s shows: %w", l.Path(), err)
	}
	return (*status)(info), nil
}
