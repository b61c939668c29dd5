package loopdev

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Flush writes into an image what pods wrote to its loop device so far. It writes from the cache of
// the file system on it and of the device. An image without a loop device has all of it.
func Flush(image *os.File) error {
	loop, err := Find(image)
	if loop == nil || err != nil {
		return err
	}
	defer loop.Close()
	for {
		err := unix.IoctlSetInt(int(loop.file.Fd()), unix.BLKFLSBUF, 0)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return fmt.Errorf("writing what %s holds into its image: %w", loop.Path(), err)
		}
		return nil
	}
}
