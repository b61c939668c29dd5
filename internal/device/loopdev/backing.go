package loopdev

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// ImageOf opens the file that the loop device at a path shows, to know it by, and to
// mount it; nil if it is no loop device, or shows nothing. A file that lost its name is an
// error.
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
	shows, err := Shows(path, image)
	if err == nil && !shows {
		err = fmt.Errorf("%s shows a file that was %s once: find out where that is, or detach the device (losetup --detach %s)", path, image.Name(), path)
	}
	if err != nil {
		image.Close()
		return nil, err
	}
	return image, nil
}
