package loopdev

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Find finds the loop device of an image and opens it, or returns nil. While it is open the
// image backs it: the kernel detaches no open device. One that another program attached, with
// only a part of the image or read-only, is ErrForeign.
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
		loop, err := openIfBackedBy(name, identityOf(stat))
		if loop != nil || err != nil {
			return loop, err
		}
	}
	return nil, nil
}

// openIfBackedBy opens a loop device, if a file backs it; else it returns nil.
func openIfBackedBy(name string, wanted identity) (*Loop, error) {
	// Not for writing: each close after that has udev look at the device.
	loop, err := openLoop(name, unix.O_RDONLY)
	if errors.Is(err, unix.ENXIO) || errors.Is(err, os.ErrNotExist) && !isAttached(name) {
		return nil, nil // it is going away just now
	}
	if err != nil {
		return nil, err
	}
	status, err := loop.status()
	if err == nil && status != nil && status.backing() == wanted {
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

// LoopAt opens the loop device that the mount table shows as major:minor. It is nil for any other
// device, for a partition of one, and for one without a backing file.
func LoopAt(number string) (*Loop, error) {
	name := kernelsSysfs.loopAt(number)
	if name == "" {
		return nil, nil
	}
	loop, err := openLoop(name, unix.O_RDONLY)
	if errors.Is(err, unix.ENXIO) || errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	shown, err := loop.status()
	if shown == nil || err != nil {
		loop.Close()
		return nil, err
	}
	return loop, nil
}
