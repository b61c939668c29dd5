package container

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Numbers are what the kernel knows a device by.
type Numbers struct {
	Major, Minor int64
}

// NumbersOf asks for those of the block device at a path, which isn't opened.
func NumbersOf(path string) (Numbers, error) {
	var stat unix.Stat_t
	if err := unix.Lstat(path, &stat); err != nil {
		return Numbers{}, &os.PathError{Op: "looking at device", Path: path, Err: err}
	}
	if stat.Mode&unix.S_IFMT != unix.S_IFBLK {
		return Numbers{}, fmt.Errorf("looking at device %s: it isn't a block device: was it unmounted by hand? It is mounted again at the next look", path)
	}
	return Numbers{Major: int64(unix.Major(stat.Rdev)), Minor: int64(unix.Minor(stat.Rdev))}, nil
}
