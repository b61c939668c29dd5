// Package filetree removes, moves and measures trees of files that tenants filled. It does so
// however deep they are, in slices of time, without following a symlink or entering a mount.
// Removals begin with a rename, so that a crash in the middle leaves no half of a volume at its
// path.
//
// The NodeVolume reconciler, volume types and package remote call it. It never decides
// what may be removed.
package filetree

import (
	"context"
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stowage-dev/stowage/internal/mount/safepath"
)

// DeletingDir holds what is being removed, under the name that it had.
const DeletingDir = ".deleting"

// PrepareRemoval makes the folder that Retire moves directories to, so that it is there
// once the disk is full.
func PrepareRemoval(parent *os.File) error { return safepath.EnsureDir(parent, DeletingDir, 0o700) }

// Retire moves the directory name out of an open directory into its ".deleting"
// folder, and returns that folder, for RemoveTree. From then on, the
// directory isn't at its path. It is a success if the
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

// RemoveRetired removes the rest of a directory that Retire moved away, after a crash or the
// end of the time. After the time until it stops, as RemoveTreeUntil does.
func RemoveRetired(ctx context.Context, parent *os.File, name string, until time.Time) error {
	deleting, err := safepath.OpenAt(parent, DeletingDir)
	if err != nil {
		return err
	}
	defer deleting.Close()
	return RemoveTreeUntil(ctx, deleting, name, until)
}

// RemoveTree removes the directory name, with all that it holds, from an open directory. Symlinks are
// removed, never followed. If something is mounted in the tree, that is ErrMounted, and nothing was
// removed. If it is mounted while the removal runs, the kernel refuses to go there, and the rest
// stays. A directory that doesn't exist is a success; a file in its place is an error.
func RemoveTree(ctx context.Context, parent *os.File, name string) error {
	return RemoveTreeUntil(ctx, parent, name, time.Time{})
}

// empty removes all that a directory holds.
func (r *removal) empty(dir *os.File, depth int) error {
	for {
		names, err := r.batch(dir)
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

// remove removes one entry of a directory.
func (r *removal) remove(dir *os.File, name string, depth int) error {
	err := unlinkAnyway(dir, name, 0)
	if err == nil || depth >= maxDepth && errors.Is(err, unix.EISDIR) && r.moveToTop(dir, name) {
		return r.count()
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
	return r.count()
}

// moveToTop moves a directory to the top of the tree, where the removal finds it again, and
// reports whether that succeeded. Some file systems can't move some directories, such as those
// of another project. A tenant can't guess the name.
func (r *removal) moveToTop(dir *os.File, name string) bool {
	to := ".moved-" + rand.Text()
	err := unix.Renameat2(int(dir.Fd()), name, int(r.top.Fd()), to, unix.RENAME_NOREPLACE)
	if errors.Is(err, unix.EINVAL) {
		// NFS knows no such rename.
		err = unix.Renameat(int(dir.Fd()), name, int(r.top.Fd()), to)
	}
	return err == nil
}

// RemoveTreeUntil does what RemoveTree does, and stops between two files after the time until:
// that is ErrUnfinished. However little time there is, each call makes progress. The zero time
// is no limit.
func RemoveTreeUntil(ctx context.Context, parent *os.File, name string, until time.Time) error {
	return (&removal{ctx: ctx, until: until}).of(parent, name, refuseMounts)
}

// RemoveUnmounted does what RemoveTree does, without a look at the mount table: the caller has just seen that nothing is mounted
// in the tree. The kernel goes to no mount all the same, and the rest then stays.
func RemoveUnmounted(ctx context.Context, parent *os.File, name string) error {
	return (&removal{ctx: ctx}).of(parent, name, func(*os.File) error { return nil })
}

// of removes the directory name from an open directory, unless a check of the opened one refuses it.
func (r *removal) of(parent *os.File, name string, check func(top *os.File) error) error {
	top, err := safepath.OpenToRead(parent, name)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer top.Close()
	if err := check(top); err != nil {
		return err
	}
	r.top = top
	if err := r.empty(top, 1); err != nil {
		return err
	}
	return unlink(parent, name, unix.AT_REMOVEDIR)
}
