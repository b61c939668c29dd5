package loopdev

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Attached is which loop device showed which file at one moment. Who looks for many
// files asks for it once, instead of looking at every device for each.
type Attached map[identity]string

// ReadAttached looks at every loop device.
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

// Find finds the loop device that shows an image and opens it, or returns nil. What
// became of it since is heeded: a device that shows another file now isn't it.
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
