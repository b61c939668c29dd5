package loopdev

import (
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// LoopAt opens the loop device that the mount table shows as major:minor; nil if that is
// none, or shows nothing; a partition of one is none. While it is open it shows what it shows.
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

// Size is how many bytes the device has now.
func (l *Loop) Size() (int64, error) {
	size, err := l.file.Seek(0, io.SeekEnd)
	if err != nil {
		return 0, fmt.Errorf("asking for the size of %s: %w", l.Path(), err)
	}
	return size, nil
}
