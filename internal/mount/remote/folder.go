package remote

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stowage-dev/stowage/internal/mount/filetree"
	"github.com/stowage-dev/stowage/internal/mount/safepath"
)

const (
	// removalSlice is how long one process removes files. The next one goes on, and a
	// server that is only slow isn't taken for a silent one.
	removalSlice = 10 * time.Second
	// foldersMode is that of the directory that folders lie in. A process that knows the name of a
	// folder can open it, but can't list the others.
	foldersMode = 0o711
)

// Folder is a directory of its own on a share, made for one user of it and removed after that. File
// systems of servers can't do all that those of disks can, such as to rename only to a name that is
// free. Folders are made and removed without.
type Folder struct {
	// Parent is the directory of the share that all of its folders lie in. Name is the folder's in
	// it, which no other folder may ever have.
	Parent, Name string
	// UID and GID are its owner and group, and Mode is its permissions, with setgid and the
	// sticky bit.
	UID, GID int
	Mode     os.FileMode
}

// Make does what Calls.MakeFolder does, in this process: it waits for the server, however long
// that takes.
func (f Folder) Make(ctx context.Context, base string) error {
	share, err := openShare(base)
	if err != nil {
		return err
	}
	defer share.Close()
	parent, err := ensureAndOpen(share, f.Parent, foldersMode)
	if err != nil {
		return err
	}
	defer parent.Close()
	there, err := safepath.OpenAt(parent, f.Name)
	if err == nil {
		return there.Close()
	}
	if !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return f.makeIn(ctx, parent)
}

// makeIn gives the folder its name last. The name is unique, so the rename replaces nothing.
func (f Folder) makeIn(ctx context.Context, parent *os.File) error {
	unfinished, err := filetree.BeginDir(ctx, parent, f.Name)
	if err != nil {
		return err
	}
	defer unfinished.Close()
	if err := f.setOwner(unfinished); err != nil {
		return err
	}
	at := int(parent.Fd())
	if err := unix.Renameat(at, safepath.UnfinishedPrefix+f.Name, at, f.Name); err != nil {
		return &os.PathError{Op: "finishing directory", Path: filepath.Join(parent.Name(), f.Name), Err: err}
	}
	return nil
}

// setOwner sets owner and mode. It leaves an owner that is right already: a server that
// squashes root refuses even that change.
func (f Folder) setOwner(dir *os.File) error {
	writable, err := safepath.Reopen(dir)
	if err != nil {
		return err
	}
	defer writable.Close()
	var now unix.Stat_t
	if err := unix.Fstat(int(writable.Fd()), &now); err != nil {
		return &os.PathError{Op: "asking for", Path: dir.Name(), Err: err}
	}
	if int(now.Uid) != f.UID || int(now.Gid) != f.GID {
		if err := unix.Fchown(int(writable.Fd()), f.UID, f.GID); err != nil {
			return fmt.Errorf("giving directory %s, which is user %d's, to user %d, group %d: %w", dir.Name(), now.Uid, f.UID, f.GID, err)
		}
	}
	// Last: a new owner takes setgid away.
	if err := unix.Fchmod(int(writable.Fd()), safepath.ModeBits(f.Mode)); err != nil {
		return &os.PathError{Op: "setting the mode of directory", Path: dir.Name(), Err: err}
	}
	return nil
}

// removeFor removes the folder, or as much of it as there is time for: then it is EINPROGRESS.
func (f Folder) removeFor(limit time.Duration, base string) error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	err := f.Remove(ctx, base)
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("removing folder %s: %w", f.Name, unix.EINPROGRESS)
	}
	return err
}

// Remove does what Calls.RemoveFolder does, in this process. It checks the context between one
// file and the next.
func (f Folder) Remove(ctx context.Context, base string) error {
	share, err := openShare(base)
	if err != nil {
		return err
	}
	defer share.Close()
	parent, err := safepath.OpenAt(share, f.Parent)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer parent.Close()
	if err := filetree.RemoveUnfinished(ctx, parent, f.Name); err != nil {
		return err
	}
	deleting, err := ensureAndOpen(parent, filetree.DeletingDir, 0o700)
	if err != nil {
		return err
	}
	defer deleting.Close()
	// What an earlier attempt left has the name that is needed.
	if err := filetree.RemoveTree(ctx, deleting, f.Name); err != nil {
		return err
	}
	if err := f.retire(parent, deleting); err != nil {
		return err
	}
	return filetree.RemoveTree(ctx, deleting, f.Name)
}

// retire moves the folder to where folders are removed. Anything but a directory isn't
// one that was made here: it stays, and is an error.
func (f Folder) retire(parent, deleting *os.File) error {
	there, err := safepath.OpenToRead(parent, f.Name)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	there.Close()
	if err := unix.Renameat(int(parent.Fd()), f.Name, int(deleting.Fd()), f.Name); err != nil {
		return &os.PathError{Op: "moving away", Path: filepath.Join(parent.Name(), f.Name), Err: err}
	}
	return nil
}

// openShare opens what is mounted at base. Where nothing is, an empty mount point would
// pass for a share on which there is nothing to remove.
func openShare(base string) (*os.File, error) {
	share, err := os.OpenFile(base, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	var answer unix.Statx_t
	err = unix.Statx(int(share.Fd()), "", unix.AT_EMPTY_PATH, unix.STATX_TYPE, &answer)
	if err == nil && answer.Attributes&unix.STATX_ATTR_MOUNT_ROOT == 0 {
		err = errors.New("nothing is mounted there")
	}
	if err != nil {
		share.Close()
		return nil, fmt.Errorf("looking for a share at %s: %w", base, err)
	}
	return share, nil
}

// ensureAndOpen makes a directory, which others may make at the same time, also from other
// machines.
func ensureAndOpen(parent *os.File, name string, mode os.FileMode) (*os.File, error) {
	found, err := safepath.OpenAt(parent, name)
	if !errors.Is(err, os.ErrNotExist) {
		return found, err
	}
	if err := safepath.MakeDir(parent, name, mode); err != nil && !errors.Is(err, unix.EEXIST) {
		return nil, err
	}
	return safepath.OpenAt(parent, name)
}
