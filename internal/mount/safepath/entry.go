package safepath

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// OpenToRead opens a directory below an open one, to list it: no symlink leads there,
// and no mount (ErrMounted).
func OpenToRead(dir *os.File, path string) (*os.File, error) {
	return Openat2(dir, path, unix.O_RDONLY|unix.O_DIRECTORY, Beneath|unix.RESOLVE_NO_XDEV)
}

// OpenEntry opens an entry of an open directory, of whatever kind, to inspect it and to change
// its owner and mode. The file can't be read or written; a symlink is opened itself; a
// device's driver isn't called. A mount point is ErrMounted.
func OpenEntry(dir *os.File, name string) (*os.File, error) {
	return Openat2(dir, name, unix.O_PATH|unix.O_NOFOLLOW, Beneath|unix.RESOLVE_NO_XDEV)
}

// Reopen opens an open directory again, to list it or to change its owner and mode.
func Reopen(dir *os.File) (*os.File, error) {
	return Openat2(dir, ".", unix.O_RDONLY|unix.O_DIRECTORY, Beneath)
}

// IsElsewhere reports whether the error of an open says that the name isn't part of its
// directory: it is gone, became another kind of file, or a mount point.
func IsElsewhere(err error) bool {
	for _, kind := range []error{os.ErrNotExist, ErrOutside, ErrMounted, unix.ENOTDIR} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}

// PathOf is where an open file is now.
func PathOf(file *os.File) (string, error) {
	path, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", file.Fd()))
	if err != nil {
		return "", fmt.Errorf("asking where %s is: %w", file.Name(), err)
	}
	return path, nil
}
