package volumes

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/stowage-dev/stowage/internal/mount"
)

// BindExactly does what Bind does, but an existing mount at target must have the same source and
// access: any other is ErrOtherVolume. The parent of target must exist: else the path would exist
// only in this process's mount namespace, and not for pods.
func BindExactly(mounter mount.Mounter, source *os.File, target string, access mount.Access) error {
	there, err := isBound(mounter, source, target, access)
	if err != nil || there {
		return err
	}
	if err := os.Mkdir(target, mountPointMode); err != nil && !errors.Is(err, os.ErrExist) {
		return fmt.Errorf("making the mount point: %w", err)
	}
	return Bind(mounter, source, target, access)
}

// BindFileExactly does for a file or device what BindExactly does for a directory.
func BindFileExactly(mounter mount.Mounter, source *os.File, target string, access mount.Access) error {
	there, err := isBound(mounter, source, target, access)
	if err != nil || there {
		return err
	}
	return BindFile(mounter, source, target, access)
}

// isBound reports whether source is mounted at target.
func isBound(mounter mount.Mounter, source *os.File, target string, access mount.Access) (bool, error) {
	table, err := mounter.Table()
	if err != nil {
		return false, err
	}
	point, mounted := table.At(target)
	if !mounted {
		return false, nil
	}
	wanted, err := source.Stat()
	if err != nil {
		return false, err
	}
	there, err := os.Stat(target)
	if err != nil {
		return false, err
	}
	if point.Access != access || !os.SameFile(wanted, there) {
		return false, fmt.Errorf("mounting %s at %s: %w", source.Name(), target, ErrOtherVolume)
	}
	return true, nil
}

// RemovePoint removes a mount point, an empty directory or file, on which nothing is mounted any
// more. A missing one is a success.
func RemovePoint(path string) error {
	var stat unix.Stat_t
	err := unix.Lstat(path, &stat)
	switch {
	case errors.Is(err, unix.ENOENT):
		return nil
	case err != nil:
		return &os.PathError{Op: "inspecting", Path: path, Err: err}
	case stat.Mode&unix.S_IFMT == unix.S_IFDIR:
		return RemoveEmptyDir(path)
	case stat.Mode&unix.S_IFMT != unix.S_IFREG || stat.Size > 0:
		return fmt.Errorf("removing %s: an empty file was expected: inspect it, and remove it by hand", path)
	default:
		return os.Remove(path)
	}
}
