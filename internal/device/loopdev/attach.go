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
	"github.com/stowage-dev/stowage/internal/holder"
)

const (
	// attempts is how often Attach tries a free loop device: each time another
	// program may be quicker.
	attempts     = 100
	attemptPause = 2 * time.Millisecond
	// detachTimeout is how long others, such as udev, may have a device open that is
	// to be detached.
	detachTimeout = 5 * time.Second
	detachRetry   = 20 * time.Millisecond
)

// Attach attaches an image to a loop device, and holds the device open. An image that is
// attached already keeps its device, which gets the size that the image has now: a repeat
// after a crash. The image need not be open for reading. An image that is being removed is
// ErrGone, a reserved one ErrReserved.
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

// attachNew attaches a free loop device.
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

// isTaken reports whether another program was quicker: it attached the device, or removed it,
// or still has it open.
func isTaken(err error) bool {
	for _, errno := range []error{unix.EBUSY, unix.EAGAIN, unix.ENXIO, unix.ENODEV} {
		if errors.Is(err, errno) {
			return true
		}
	}
	return false
}

// configure attaches an image to a free loop device, and holds it open.
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
	// A crash may have left the device read-only with its image before.
	if err := loop.SetReadOnly(false); err != nil {
		loop.Close()
		return nil, err
	}
	return loop, nil
}

// Detach detaches the device, and closes it. While others have it open, or it is mounted, that
// is ErrInUse: the device detaches with the last of them.
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
	return l.awaitGone(ctx, before.backing())
}

// awaitGone waits until a file doesn't back the loop device any more.
func (l *Loop) awaitGone(ctx context.Context, shown identity) error {
	ctx, cancel := context.WithTimeout(ctx, detachTimeout)
	defer cancel()
	tick := time.NewTicker(detachRetry)
	defer tick.Stop()
	for {
		again, err := openIfBackedBy(l.name, shown)
		if again == nil || err != nil {
			return err
		}
		again.Close()
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("detaching %s: %w: %s", l.Path(), device.ErrInUse, explain(holder.Thing{Path: l.Path(), Device: l.Device()}, holder.Processes))
		}
	}
}
