package safepath

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// OpenHost opens what an absolute path of this machine leads to, of whatever kind, to know and to
// mount it. It can't be read or written. Symlinks are followed, as they are the administrator's.
// Those of /proc are not that lead into what a program has open, such as the agent.
func OpenHost(path string) (*os.File, error) {
	how := &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_MAGICLINKS}
	fd, err := unix.Openat2(unix.AT_FDCWD, path, how)
	switch {
	case errors.Is(err, unix.ELOOP):
		return nil, fmt.Errorf("opening %s: a part of the path leads through what a program has open, or through too many symlinks: %w", path, ErrOutside)
	case err != nil:
		return nil, &os.PathError{Op: "opening", Path: path, Err: err}
	}
	return os.NewFile(uintptr(fd), path), nil
}

// EnsureFile makes the empty file name in an open directory, with exactly this mode. If something
// of that name exists, it makes nothing. It opens the file as OpenFileAt does.
func EnsureFile(dir *os.File, name string, mode os.FileMode) (*os.File, error) {
	const onlyNew = unix.O_CREAT | unix.O_EXCL | unix.O_WRONLY | unix.O_CLOEXEC
	fd, err := unix.Openat(int(dir.Fd()), name, onlyNew, uint32(mode.Perm()))
	if err != nil && !errors.Is(err, unix.EEXIST) {
		return nil, &os.PathError{Op: "making file", Path: filepath.Join(dir.Name(), name), Err: err}
	}
	if err == nil {
		// The umask took bits away.
		err = errors.Join(unix.Fchmod(fd, uint32(mode.Perm())), unix.Close(fd))
	}
	if err != nil && !errors.Is(err, unix.EEXIST) {
		return nil, fmt.Errorf("setting the mode of %s: %w", filepath.Join(dir.Name(), name), err)
	}
	return OpenFileAt(dir, name)
}
