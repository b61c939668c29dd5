package subpath

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/mount/safepath"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

const (
	// targetDirMode is that of the directories in which targets lie.
	targetDirMode = 0o750
	// madeMode is the least mode of a directory made in a volume, which otherwise has the mode
	// of the volume's top.
	madeMode = 0o750
)

// Volume is one of which parts are mounted.
type Volume struct {
	// Open is the volume, which is mounted at Path.
	Open *os.File
	Path string
	// Table is what was mounted after it was opened.
	Table mount.Table
}

// MountMissing mounts the parts of a volume that aren't mounted. It fails if a new mount doesn't count
// as mounted: else each pass over the pod would mount it again.
func MountMissing(ctx context.Context, mounter mount.Mounter, volume Volume, parts []Part) error {
	for _, part := range parts {
		if err := ctx.Err(); err != nil {
			return err
		}
		if Inspect(volume.Table, volume.Path, part.Target) == Mounted {
			continue
		}
		if err := Mount(mounter, volume.Open, part); err != nil {
			return err
		}
	}
	table, err := mounter.Table()
	if err != nil {
		return err
	}
	for _, part := range parts {
		if Inspect(table, volume.Path, part.Target) != Mounted {
			return fmt.Errorf("subPath %s lies on another file system than its volume, or was removed from it while it was opened", part.Written)
		}
	}
	return nil
}

// Mount mounts a part of an open volume at its target. An earlier mount there stays until the
// part was opened. Missing directories of the part are made. It can be repeated after a call
// that was interrupted at any point. Errors never contain the path, which may hold a secret.
func Mount(mounter mount.Mounter, volume *os.File, part Part) error {
	if err := part.check(); err != nil {
		return err
	}
	source, err := open(volume, part)
	if err != nil {
		return explain(part, err)
	}
	defer source.Close()
	if err := removeTarget(mounter, part.Target); err != nil {
		return err
	}
	return explain(part, bind(mounter, source, part))
}

// open opens the part. The mount is of what was opened, even if the path changes afterwards.
func open(volume *os.File, part Part) (*os.File, error) {
	if part.Fixed {
		return safepath.OpenWithin(volume, part.Path)
	}
	top, err := volume.Stat()
	if err != nil {
		return nil, err
	}
	return safepath.EnsureWithin(volume, part.Path, top.Mode().Perm()|madeMode)
}

// bind mounts a directory on a directory, and anything else on a file.
func bind(mounter mount.Mounter, source *os.File, part Part) error {
	if err := os.MkdirAll(filepath.Dir(part.Target), targetDirMode); err != nil {
		return err
	}
	info, err := source.Stat()
	if err != nil {
		return err
	}
	if info.IsDir() {
		return volumes.Bind(mounter, source, part.Target, part.Access)
	}
	return volumes.BindFile(mounter, source, part.Target, part.Access)
}

// explain describes an error by the text of the pod's spec, without the path.
func explain(part Part, err error) error {
	var errno syscall.Errno
	switch {
	case err == nil:
		return nil
	case errors.Is(err, safepath.ErrOutside):
		return fmt.Errorf("%s: a symlink on the way there leads out of the volume: replace it by one that doesn't, relative to its own directory: %w", part.Written, safepath.ErrOutside)
	case errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("%s isn't in the volume: add it there, or correct the pod: %w", part.Written, os.ErrNotExist)
	case errors.Is(err, unix.EROFS):
		return fmt.Errorf("%s isn't in the volume, which can't be written: make it with a pod that may write there, or correct the pod: %w", part.Written, unix.EROFS)
	case errors.Is(err, unix.ENOTDIR):
		return fmt.Errorf("%s passes through a file: remove that from the volume, or correct the pod: %w", part.Written, unix.ENOTDIR)
	case errors.Is(err, os.ErrExist):
		return fmt.Errorf("%s: a symlink on the way there leads nowhere, or something was replaced during the call: remove the symlink: %w", part.Written, os.ErrExist)
	case errors.Is(err, mount.ErrMounted):
		return fmt.Errorf("mounting %s at %s: %w", part.Written, part.Target, mount.ErrMounted)
	case errors.As(err, &errno):
		return fmt.Errorf("mounting %s at %s: %w", part.Written, part.Target, errno)
	default:
		return fmt.Errorf("mounting %s at %s failed", part.Written, part.Target)
	}
}
