package loopdev

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Attached maps backing files to loop devices, at one moment: a search for many files reads
// every device once, and not once for each file.
type Attached map[identity]string

// ReadAttached reads every loop device.
func ReadAttached() (Attached, error) {
	names, err := kernelsSysfs.attached()
	if err != nil {
		return nil, err
	}
	attached := Attached{}
	for _, name := range names {
		loop, err := openLoop(name, unix.O_RDONLY)
		if err != nil {
			continue // it is going away just now, and if not, it is found another time
		}
		if status, err := loop.status(); err == nil && status != nil {
			attached[status.backing()] = name
		}
		loop.Close()
	}
	return attached, nil
}

// Find finds the loop device of an image and opens it, or returns nil. A device that has got
// another backing file since isn't it.
func (a Attached) Find(image *os.File) (*Loop, error) {
	var stat unix.Stat_t
	if err := unix.Fstat(int(image.Fd()), &stat); err != nil {
		return nil, fmt.Errorf("asking for the inode of %s: %w", image.Name(), err)
	}
	name, found := a[identityOf(stat)]
	if !found {
		return nil, nil
	}
	return openIfBackedBy(name, identityOf(stat))
}
