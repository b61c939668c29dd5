package safepath

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// OpenFileAt opens the regular file at path below an open directory, with no symlink between the
// two, to know and to mount it. It can't be read or written. Something else in its place is an
// error.
func OpenFileAt(dir *os.File, path string) (*os.File, error) {
	file, err := Openat2(dir, path, unix.O_PATH, Beneath)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("opening %s: it isn't a file", file.Name())
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}
