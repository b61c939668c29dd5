package ownership

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/stowage-dev/stowage/internal/device"
)

// change changes the group and mode of one open file, and of no other.
func (w *walk) change(file *os.File) error {
	stat, err := statOf(file)
	if err != nil || w.group.has(stat) {
		return err
	}
	if int(stat.Gid) != w.group.ID {
		err := unix.Fchownat(int(file.Fd()), "", -1, w.group.ID, unix.AT_EMPTY_PATH)
		if err != nil {
			return w.unlessRefused(&os.PathError{Op: "changing the group of", Path: file.Name(), Err: err})
		}
	}
	var wanted uint32
	switch stat.Mode & unix.S_IFMT {
	case unix.S_IFLNK:
		return nil // it has no mode of its own
	case unix.S_IFDIR:
		wanted = w.group.DirMode(stat.Mode)
	default:
		// The owner may have changed since the mode was read.
		wanted = w.group.fileMode(stat.Mode) &^ (unix.S_ISUID | unix.S_ISGID)
	}
	return w.setMode(file, wanted)
}

// setMode goes by the open file, also where it can't be read: fchmod takes no O_PATH file, and
// fchmodat2 needs Linux 6.6.
func (w *walk) setMode(file *os.File, mode uint32) error {
	if err := unix.Chmod(device.PathOf(file), mode); err != nil {
		return w.unlessRefused(&os.PathError{Op: "changing the mode of", Path: file.Name(), Err: err})
	}
	return nil
}

// unlessRefused counts what the kernel refuses for good, and passes other errors on.
func (w *walk) unlessRefused(err error) error {
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOTSUP) {
		w.refused++
		return nil
	}
	return err
}

func statOf(file *os.File) (*unix.Stat_t, error) {
	stat := &unix.Stat_t{}
	if err := unix.Fstat(int(file.Fd()), stat); err != nil {
		return nil, &os.PathError{Op: "looking at", Path: file.Name(), Err: err}
	}
	return stat, nil
}

// isReadOnly reports whether the file system of a directory, or this mount of it, refuses
// changes.
func isReadOnly(dir *os.File) (bool, error) {
	var system unix.Statfs_t
	if err := unix.Fstatfs(int(dir.Fd()), &system); err != nil {
		return false, fmt.Errorf("asking for the file system of %s: %w", dir.Name(), err)
	}
	return system.Flags&unix.ST_RDONLY != 0, nil
}
