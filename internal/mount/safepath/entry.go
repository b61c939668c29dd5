package safepath

import (
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
