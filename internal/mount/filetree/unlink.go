package filetree

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/mount/safepath"
)

const (
	// readBatch is how many names are read before they are removed.
	readBatch = 1024
	// maxDepth is how many directories are held open at once: a tenant can nest deeper than
	// this process may open files.
	maxDepth = 64
)

// unlink removes one name; one that is gone is a success.
func unlink(dir *os.File, name string, flags int) error {
	err := unix.Unlinkat(int(dir.Fd()), name, flags)
	switch {
	case err == nil || errors.Is(err, unix.ENOENT):
		return nil
	case errors.Is(err, unix.EBUSY):
		return fmt.Errorf("removing %s: %w", safepath.NameOf(dir, name), mount.ErrMounted)
	default:
		return &os.PathError{Op: "removing", Path: safepath.NameOf(dir, name), Err: err}
	}
}

// unlinkAnyway removes one name. It first changes what keeps the owner of the directory from that. On
// shares where root acts as another user this is its mode; on btrfs, that the directory is a
// read-only snapshot.
func unlinkAnyway(dir *os.File, name string, flags int) error {
	err := unlink(dir, name, flags)
	switch {
	case errors.Is(err, unix.EACCES) && unix.Fchmod(int(dir.Fd()), ownersMode) == nil,
		errors.Is(err, unix.EROFS) && makeWritable(dir) == nil:
		err = unlink(dir, name, flags)
	}
	return err
}

// openAnyway opens a directory that is to be emptied, whatever its mode.
func openAnyway(dir *os.File, name string) (*os.File, error) {
	child, err := safepath.OpenToRead(dir, name)
	if errors.Is(err, unix.EACCES) && makePassable(dir, name) == nil {
		child, err = safepath.OpenToRead(dir, name)
	}
	return child, err
}

// makePassable lets the owner of a directory look into it and change it.
func makePassable(dir *os.File, name string) error {
	child, err := safepath.Openat2(dir, name, unix.O_PATH|unix.O_DIRECTORY, safepath.Beneath|unix.RESOLVE_NO_XDEV)
	if err != nil {
		return err
	}
	defer child.Close()
	// What is open only as a path can't be changed but by its link in /proc.
	return os.Chmod(fmt.Sprintf("/proc/self/fd/%d", child.Fd()), ownersMode)
}

// ownersMode lets the owner of a directory that is being removed remove what it holds.
const ownersMode = 0o700
