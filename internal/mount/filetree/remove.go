// Package filetree removes, moves and measures trees of files that tenants filled: however
// deep, in slices of time, without following a symlink or entering a mount. Removals begin
// with a rename, so that a crash in the middle leaves no half of a volume at its path.
//
// The NodeVolume reconciler, volume types and package remote call it. It never decides
// what may be removed.
package filetree

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/mount/safepath"
)

const (
	// readBatch is how many names are read before they are removed.
	readBatch = 1024
	// maxDepth is how many directories are held open at once. Whoever fills a
	// volume can nest deeper than this process may open files.
	maxDepth = 64
	// DeletingDir holds what is being removed, under the name that it had.
	DeletingDir = ".deleting"
)

// PrepareRemoval makes the folder that Retire moves directories to, so that it is there
// once the disk is full.
func PrepareRemoval(parent *os.File) error { return safepath.EnsureDir(parent, DeletingDir, 0o700) }

// Retire moves the directory name out of an open directory into its ".deleting"
// folder, and returns that folder, for RemoveTree. Whoever looks for the
// directory by its path doesn't find it from then on. It is a success if the
// directory was moved before, or isn't there; where both are, it is os.ErrExist.
func Retire(parent *os.File, name string) (*os.File, error) {
	if err := PrepareRemoval(parent); err != nil {
		return nil, err
	}
	deleting, err := safepath.OpenAt(parent, DeletingDir)
	if err != nil {
		return nil, err
	}
	err = unix.Renameat2(int(parent.Fd()), name, int(deleting.Fd()), name, unix.RENAME_NOREPLACE)
	if err != nil && !errors.Is(err, unix.ENOENT) {
		deleting.Close()
		return nil, &os.PathError{Op: "moving away", Path: filepath.Join(parent.Name(), name), Err: err}
	}
	return deleting, nil
}

// RemoveRetired removes what is left of a directory of this name that Retire moved
// away, and whose removal was cut off. After the time until it stops, as RemoveTreeUntil
// does.
func RemoveRetired(ctx context.Context, parent *os.File, name string, until time.Time) error {
	deleting, err := safepath.OpenAt(parent, DeletingDir)
	if err != nil {
		return err
	}
	defer deleting.Close()
	return RemoveTreeUntil(ctx, deleting, name, until)
}

// RemoveTree removes the directory name, with all that it holds, from an open
// directory. Symlinks are removed, never followed. If something is mounted in
// the tree, that is ErrMounted, and nothing was removed; if it is mounted while
// the removal runs, the kernel refuses to go there, and the rest stays.
// A directory that doesn't exist is a success; a file in its place is an error.
func RemoveTree(ctx context.Context, parent *os.File, name string) error {
	return RemoveTreeUntil(ctx, parent, name, time.Time{})
}

// refuseMounts is an error if the mount table shows a mount in the directory.
func refuseMounts(dir *os.File) error {
	path, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", dir.Fd()))
	if err != nil {
		return fmt.Errorf("asking where %s is: %w", dir.Name(), err)
	}
	table, err := mount.Kernel{}.Table()
	if err != nil {
		return err
	}
	if points := table.Below(path); len(points) > 0 {
		return fmt.Errorf("removing %s: %s: %w", dir.Name(), points[0].Path, mount.ErrMounted)
	}
	return nil
}

// ownersMode lets the owner of a directory that is being removed remove what it holds.
const ownersMode = 0o700

// empty removes all that a directory holds.
func (r *removal) empty(dir *os.File, depth int) error {
	for {
		names, err := r.some(dir)
		if err != nil || len(names) == 0 {
			return err
		}
		for _, name := range names {
			if err := r.remove(dir, name, depth); err != nil {
				return err
			}
		}
	}
}

// some lists the first names in a directory: from the start each time, because removing
// moves what a listing continues with.
func (r *removal) some(dir *os.File) ([]string, error) {
	if err := r.ctx.Err(); err != nil {
		return nil, fmt.Errorf("removing %s: %w", dir.Name(), err)
	}
	if _, err := dir.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	names, err := dir.Readdirnames(readBatch)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return names, err
}

// remove removes one entry of a directory.
func (r *removal) remove(dir *os.File, name string, depth int) error {
	err := unlinkAnyway(dir, name, 0)
	if err == nil || depth >= maxDepth && errors.Is(err, unix.EISDIR) && r.moveToTop(dir, name) {
		return r.get()
	}
	if !errors.Is(err, unix.EISDIR) {
		return err
	}
	child, err := openAnyway(dir, name)
	if err != nil {
		return err
	}
	defer child.Close()
	r.steps++
	if depth >= maxDepth {
		err = r.emptyDeep(child)
	} else {
		err = r.empty(child, depth+1)
	}
	if err == nil {
		err = unlink(dir, name, unix.AT_REMOVEDIR)
	}
	if err != nil {
		return err
	}
	return r.get()
}

// moveToTop moves a directory to the top of the tree, where it is found again, and tells
// whether it did. Some file systems can't move some directories, such as those of another
// project. A tenant can't guess the name.
func (r *removal) moveToTop(dir *os.File, name string) bool {
	to := ".moved-" + rand.Text()
	err := unix.Renameat2(int(dir.Fd()), name, int(r.top.Fd()), to, unix.RENAME_NOREPLACE)
	if errors.Is(err, unix.EINVAL) {
		// NFS knows no such rename.
		err = unix.Renameat(int(dir.Fd()), name, int(r.top.Fd()), to)
	}
	return err == nil
}

// unlinkAnyway removes one name, and changes first what keeps the owner of the directory
// from that: on shares where root acts as another user, its mode; on btrfs, that it is a
// snapshot for reading only.
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
