package filesystem

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// isBlank reports whether a path is a file to which nothing was ever written. It consists of holes
// or of reserved space, so there is nothing to find. Some file systems don't report holes: then it
// is false.
func isBlank(path string) (bool, error) {
	file, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() || info.Size() == 0 {
		return false, err
	}
	_, err = unix.Seek(int(file.Fd()), 0, unix.SEEK_DATA)
	switch {
	case errors.Is(err, unix.ENXIO):
		return true, nil
	case err == nil || errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EOPNOTSUPP):
		return false, nil
	default:
		return false, fmt.Errorf("looking for what was written to %s: %w", path, err)
	}
}
