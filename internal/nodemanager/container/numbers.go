package container

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Numbers are the device numbers of a device.
type Numbers struct {
	Major, Minor int64
}

// NumbersOf returns the numbers of the block device at a path, without opening it.
func NumbersOf(path string) (Numbers, error) {
	var stat unix.Stat_t
	if err := unix.Lstat(path, &stat); err != nil {
		return Numbers{}, &os.PathError{Op: "inspecting device", Path: path, Err: err}
	}
	if stat.Mode&unix.S_IFMT != unix.S_IFBLK {
		return Numbers{}, fmt.Errorf("inspecting device %s: it isn't a block device: was it unmounted by hand? The next pass mounts it again", path)
	}
	return Numbers{Major: int64(unix.Major(stat.Rdev)), Minor: int64(unix.Minor(stat.Rdev))}, nil
}
