package volumes

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/stowage-dev/stowage/internal/mount"
)

// mountPointMode is the mode of mount points. While the mount is missing, only root can put files
// there by mistake.
const mountPointMode = 0o750

// mountFileMode is the mode of files which something is mounted on. The mount has its own mode.
const mountFileMode = 0o600

// Bind bind-mounts the open directory source on target, and makes target. If it is mounted there
// already, nothing happens; another mount there is an error.
func Bind(mounter mount.Mounter, source *os.File, target string, access mount.Access) error {
	if err := os.MkdirAll(target, mountPointMode); err != nil {
		return fmt.Errorf("making the mount point: %w", err)
	}
	return bindOnce(mounter, source, target, access)
}

// BindFile bind-mounts the open file or device source on the file target, as Bind does. For a
// device, ReadOnly is in the mount table and protects mode and owner; writes to the device itself
// aren't refused by the mount.
func BindFile(mounter mount.Mounter, source *os.File, target string, access mount.Access) error {
	if err := EnsureFile(target); err != nil {
		return err
	}
	return bindOnce(mounter, source, target, access)
}

// EnsureFile makes the file that a file or device is mounted on. It never opens it: it may be the
// device already.
func EnsureFile(target string) error {
	if err := unix.Mknod(target, unix.S_IFREG|mountFileMode, 0); err != nil && !errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("making %s, which something is mounted on: %w", target, err)
	}
	return nil
}

func bindOnce(mounter mount.Mounter, source *os.File, target string, access mount.Access) error {
	mounted, err := mounter.IsMountPoint(target)
	if err != nil {
		return err
	}
	if !mounted {
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

// Unbind unmounts everything at or below dir, and removes the directories from target up to dir,
// which target is or lies below. They hold nothing but mount points: one that isn't empty is an
// error, and stays.
func Unbind(mounter mount.Mounter, target, dir string) error {
	// The kernel removes no directory that something is mounted at or in. So most volumes need no look at the mount table.
	if mounter.Unmount(target) == nil && removeEmptyDirs(target, dir) == nil {
		return nil
	}
	if err := mount.UnmountBelow(mounter, dir); err != nil {
		return err
	}
	return removeEmptyDirs(target, dir)
}

// removeEmptyDirs removes the empty directories from target up to dir.
func removeEmptyDirs(target, dir string) error {
	for at := target; ; at = filepath.Dir(at) {
		if err := RemoveEmptyDir(at); err != nil {
			return err
		}
		if at == dir {
			return nil
		}
	}
}

// RemoveEmptyDir removes an empty directory. A missing one is a success, and a file in its place is
// an error.
func RemoveEmptyDir(path string) error {
	err := unix.Rmdir(path)
	switch {
	case err == nil || errors.Is(err, unix.ENOENT):
		return nil
	case errors.Is(err, unix.ENOTDIR):
		return fmt.Errorf("removing %s: a directory was expected, not a file: inspect it, and remove it by hand", path)
	default:
		return fmt.Errorf("removing the mount point %s (if files lie there, inspect them, and remove them by hand): %w", path, err)
	}
}

// UnbindFile unmounts what is mounted on a file, and removes the file. A file with data is no mount
// point: it stays, and is an error.
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
		return fmt.Errorf("removing %s: an empty file was expected: inspect it, and remove it by hand", target)
	}
	return os.Remove(target)
}
