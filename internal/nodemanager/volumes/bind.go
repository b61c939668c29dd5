package volumes

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/stowage-dev/stowage/internal/mount"
)

// mountPointMode is that of directories which something is mounted on. Where
// the mount is missing, only root can put files there by mistake.
const mountPointMode = 0o750

// mountFileMode is that of files which something is mounted on: what is seen through
// the mount has a mode of its own.
const mountFileMode = 0o600

// Bind makes the directory that source is open on visible at target, which is
// made if it doesn't exist. If it is visible there already, nothing happens; if
// something else is, that is an error.
func Bind(mounter mount.Mounter, source *os.File, target string, access mount.Access) error {
	if err := os.MkdirAll(target, mountPointMode); err != nil {
		return fmt.Errorf("making the mount point: %w", err)
	}
	return bindOnce(mounter, source, target, access)
}

// BindFile makes the file or device that source is open on visible at target, a
// file, as Bind does. Of a device, ReadOnly shows in the mount table, and keeps mode
// and owner from being changed; that nobody writes is up to the device.
func BindFile(mounter mount.Mounter, source *os.File, target string, access mount.Access) error {
	if err := EnsureFile(target); err != nil {
		return err
	}
	return bindOnce(mounter, source, target, access)
}

// EnsureFile makes the file that a file or device is mounted on. It is never opened:
// it may be the device already.
func EnsureFile(target string) error {
	if err := unix.Mknod(target, unix.S_IFREG|mountFileMode, 0); err != nil && !errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("making %s, which something is mounted on: %w", target, err)
	}
	return nil
}

func bindOnce(mounter mount.Mounter, source *os.File, target string, access mount.Access) error {
	table, err := mounter.Table()
	if err != nil {
		return err
	}
	if !table.IsMountPoint(target) {
		return mounter.Bind(source, target, access)
	}
	wanted, err := source.Stat()
	if err != nil {
		return err
	}
	there, err := os.Stat(target)
	if err != nil {
		return err
	}
	if !os.SameFile(wanted, there) {
		return fmt.Errorf("mounting %s: something else is mounted at %s: %w", source.Name(), target, mount.ErrMounted)
	}
	return nil
}

// Unbind unmounts all that is mounted at or below target and removes the
// directories from target up to dir, which target is or lies below. They hold
// nothing but mount points: one that isn't empty is an error, and stays.
func Unbind(mounter mount.Mounter, target, dir string) error {
	if err := mount.UnmountBelow(mounter, dir); err != nil {
		return err
	}
	for at := target; ; at = filepath.Dir(at) {
		if err := RemoveEmptyDir(at); err != nil {
			return err
		}
		if at == dir {
			return nil
		}
	}
}

// RemoveEmptyDir removes a directory that holds nothing; one that doesn't exist
// is a success, and a file in its place is an error.
func RemoveEmptyDir(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("removing %s: a directory was expected, not a file: look at it, and remove it by hand", path)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("removing the mount point (if files lie there, look at them, and remove them by hand): %w", err)
	}
	return nil
}

// UnbindFile unmounts what is mounted on a file, and removes the file. One that
// holds something is no mount point: it stays, and is an error.
func UnbindFile(mounter mount.Mounter, target string) error {
	if err := mount.UnmountBelow(mounter, target); err != nil {
		return err
	}
	info, err := os.Lstat(target)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() || info.Size() > 0 {
		return fmt.Errorf("removing %s: an empty file was expected: look at it, and remove it by hand", target)
	}
	return os.Remove(target)
}
