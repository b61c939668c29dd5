// Package loopdev allocates images and attaches them to loop devices. The NodeVolume
// reconciler and the volume types of the node agent call it.
//
// An image is known by its device and inode, never by its path, and has at most one loop
// device. It never takes a device that shows another image, and never writes to one.
package loopdev

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stowage-dev/stowage/internal/device"
)

const (
	// attempts is how often a free loop device is asked for: each time another
	// program may be quicker to take it.
	attempts     = 100
	attemptPause = 2 * time.Millisecond
	// detachPatience is how long others, such as udev, may look at a device that
	// is to go.
	detachPatience = 5 * time.Second
	detachRetry    = 20 * time.Millisecond
)

// Use is what a loop device is for.
type Use int

const (
	// ForFileSystem has the kernel take the device away with its last user, so that
	// none is left behind by a crash. Keep the Loop open until it is mounted.
	ForFileSystem Use = iota
	// ForBlock keeps the device, which is used by its path, until Detach, also while
	// nobody has it open.
	ForBlock
)

// Loop is a loop device that is held open, and so shows what it shows.
type Loop struct {
	file *os.File
	// name is the kernel's, such as loop0, and number major:minor.
	name, number string
}

// Path is the path of the device.
func (l *Loop) Path() string { return "/dev/" + l.name }

// Device is major:minor of the device, as the mount table shows it.
func (l *Loop) Device() string { return l.number }

// Close lets go of the device. One that was attached ForFileSystem, and that is
// neither mounted nor open elsewhere, is gone then.
func (l *Loop) Close() error { return l.file.Close() }

// Attach makes an image appear as a block device, and holds it open. One that
// appears already is found again, with the size that the image has now: a crash is
// made good by a repeat. The image need not be open for reading. An image that is
// being removed is ErrGone, one that is reserved ErrReserved.
func Attach(ctx context.Context, image *os.File, use Use) (*Loop, error) {
	locked, err := lock(ctx, image)
	if err != nil {
		return nil, err
	}
	defer locked.Close()
	var stat unix.Stat_t
	if err := unix.Fstat(int(locked.Fd()), &stat); err != nil {
		return nil, fmt.Errorf("asking for the inode of %s: %w", image.Name(), err)
	}
	if stat.Nlink == 0 {
		return nil, fmt.Errorf("attaching %s: %w", image.Name(), device.ErrGone)
	}
	loop, err := Find(image)
	if err == nil && loop == nil {
		loop, err = attachNew(ctx, image, use)
	} else if err == nil {
		err = loop.Resize()
	}
	if err == nil {
		err = loop.setUse(use)
	}
	if err != nil && loop != nil {
		loop.Close()
		loop = nil
	}
	return loop, err
}

// attachNew takes a loop device that is free.
func attachNew(ctx context.Context, image *os.File, use Use) (*Loop, error) {
	control, err := os.OpenFile("/dev/loop-control", unix.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("asking for a loop device (is the node's /dev mounted, and the kernel's module loop loaded?): %w", err)
	}
	defer control.Close()
	for range attempts {
		number, err := unix.IoctlRetInt(int(control.Fd()), unix.LOOP_CTL_GET_FREE)
		if err != nil {
			return nil, fmt.Errorf("asking for a free loop device: %w", err)
		}
		loop, err := configure(number, image, use)
		if !isTaken(err) {
			return loop, err
		}
		select {
		case <-time.After(attemptPause):
		case <-ctx.Done():
			return nil, fmt.Errorf("attaching %s: %w", image.Name(), ctx.Err())
		}
	}
	return nil, fmt.Errorf("attaching %s: others took each of %d loop devices that were free", image.Name(), attempts)
}

// isTaken says whether another program was quicker: it took the device, or removed
// it, or looks at it still.
func isTaken(err error) bool {
	for _, errno := range []error{unix.EBUSY, unix.EAGAIN, unix.ENXIO, unix.ENODEV} {
		if errors.Is(err, errno) {
			return true
		}
	}
	return false
}

// configure makes a free loop device show an image, and holds it open.
func configure(number int, image *os.File, use Use) (*Loop, error) {
	// The device keeps this opening of the file, and must not keep another's lock.
	backing, err := device.Reopen(image, unix.O_RDWR)
	if err != nil {
		return nil, err
	}
	defer backing.Close()
	loop, err := openLoop(fmt.Sprintf("loop%d", number), unix.O_RDWR)
	if err != nil {
		return nil, err
	}
	sector, err := sectorOf(backing, use)
	if err != nil {
		loop.Close()
		return nil, err
	}
	config := &unix.LoopConfig{Fd: uint32(backing.Fd()), Size: sector}
	config.Info.Flags = unix.LO_FLAGS_AUTOCLEAR | unix.LO_FLAGS_DIRECT_IO
	copy(config.Info.File_name[:len(config.Info.File_name)-1], image.Name())
	if err := unix.IoctlLoopConfigure(int(loop.file.Fd()), config); err != nil {
		loop.Close()
		return nil, fmt.Errorf("attaching %s to %s: %w", image.Name(), loop.Path(), err)
	}
	// Who had the device before may have been cut off before taking writes again.
	if err := loop.SetReadOnly(false); err != nil {
		loop.Close()
		return nil, err
	}
	return loop, nil
}

// Resize makes the device as large as its image is now.
func (l *Loop) Resize() error {
	if err := unix.IoctlSetInt(int(l.file.Fd()), unix.LOOP_SET_CAPACITY, 0); err != nil {
		return fmt.Errorf("making %s as large as its image: %w", l.Path(), err)
	}
	return nil
}

// Detach takes the device away, and lets go of it. While others have it open, or
// it is mounted, that is ErrInUse: the device goes with the last of them.
func (l *Loop) Detach(ctx context.Context) error {
	defer l.Close()
	before, err := l.status()
	if before == nil || err != nil {
		return err
	}
	if err := unix.IoctlSetInt(int(l.file.Fd()), unix.LOOP_CLR_FD, 0); err != nil && !errors.Is(err, unix.ENXIO) {
		return fmt.Errorf("detaching %s: %w", l.Path(), err)
	}
	l.Close()
	return l.awaitGone(ctx, before.shows())
}

// awaitGone waits until a loop device doesn't show a file any more.
func (l *Loop) awaitGone(ctx context.Context, shown identity) error {
	ctx, cancel := context.WithTimeout(ctx, detachPatience)
	defer cancel()
	tick := time.NewTicker(detachRetry)
	defer tick.Stop()
	for {
		again, err := openIfShows(l.name, shown)
		if again == nil || err != nil {
			return err
		}
		again.Close()
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("detaching %s: %w", l.Path(), device.ErrInUse)
		}
	}
}

// openLoop opens the loop device that the kernel gives a name.
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
