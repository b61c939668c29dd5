package loopdev

import (
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"github.com/stowage-dev/stowage/internal/device"
)

// Loop is a loop device that is held open, and so keeps its backing file.
type Loop struct {
	file *os.File
	// name is the kernel's, such as loop0, and number major:minor.
	name, number string
}

// Path is the path of the device.
func (l *Loop) Path() string { return "/dev/" + l.name }

// Device is major:minor of the device, as the mount table shows it.
func (l *Loop) Device() string { return l.number }

// Close closes the device. One that was attached ForFileSystem, and that is neither mounted
// nor open elsewhere, then detaches.
func (l *Loop) Close() error { return l.file.Close() }

// Resize makes the device as large as its image is now.
func (l *Loop) Resize() error {
	if err := unix.IoctlSetInt(int(l.file.Fd()), unix.LOOP_SET_CAPACITY, 0); err != nil {
		return fmt.Errorf("making %s as large as its image: %w", l.Path(), err)
	}
	return nil
}

// Size is how many bytes the device has now.
func (l *Loop) Size() (int64, error) {
	size, err := l.file.Seek(0, io.SeekEnd)
	if err != nil {
		return 0, fmt.Errorf("asking for the size of %s: %w", l.Path(), err)
	}
	return size, nil
}

// SetReadOnly makes the kernel refuse writes to the device, or accept them again. The kernel
// keeps that for the next image of the device: accept them before Detach.
func (l *Loop) SetReadOnly(readOnly bool) error {
	return device.SetReadOnly(l.file, l.Path(), readOnly)
}

// openLoop opens the loop device with this name of the kernel's.
func openLoop(name string, flags int) (*Loop, error) {
	loop := &Loop{name: name}
	fd, err := unix.Open(loop.Path(), flags|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) {
		return nil, fmt.Errorf("opening %s (is the node's /dev mounted?): %w", loop.Path(), err)
	}
	if err != nil {
		return nil, fmt.Errorf("opening %s: %w", loop.Path(), err)
	}
	loop.file = os.NewFile(uintptr(fd), loop.Path())
	loop.number, err = numberOfDevice(loop.file)
	if err == nil {
		err = kernelsSysfs.check(name, loop.number)
	}
	if err != nil {
		loop.Close()
		return nil, fmt.Errorf("opening %s: %w", loop.Path(), err)
	}
	return loop, nil
}

// identity is what a file is known by while it exists.
type identity struct{ device, inode uint64 }

func identityOf(stat unix.Stat_t) identity {
	return identity{device: stat.Dev, inode: stat.Ino}
}

// status is the kernel's status of a loop device.
type status unix.LoopInfo64

func (s *status) backing() identity { return identity{device: s.Device, inode: s.Inode} }

func (s *status) refuseForeign(path string) error {
	if s.Offset != 0 || s.Sizelimit != 0 || s.Flags&unix.LO_FLAGS_READ_ONLY != 0 {
		return fmt.Errorf("%s shows only a part of the image, or can't be written: %w: detach it (losetup --detach %s)", path, device.ErrForeign, path)
	}
	return nil
}

// status reads the status of a loop device; nil if it has no backing file.
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
