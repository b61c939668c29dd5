package recycling

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/mount/filetree"
	"github.com/stowage-dev/stowage/internal/mount/safepath"
)

// asideDir is a directory inside the one that is being emptied, with a directory for each attempt.
const asideDir = ".stowage-recycle"

// defaultSlice is how long one call removes files: then other directories continue.
const defaultSlice = 2 * time.Second

// Kinds of errors of a Folder.
var (
	errNoRoot      = errors.New("this node's agent empties no directories")
	errIsRoot      = errors.New("the directory is the agent's --recycle-root itself")
	errInUse       = errors.New("the directory is in use")
	errFilledAgain = errors.New("the directory holds something again")
)

// Folder is the one folder of a node in which directories are emptied.
type Folder struct {
	// Root is an absolute path. Empty: nothing is emptied.
	Root string
	// Slice is how long one call removes files. Default: two seconds.
	Slice time.Duration
}

func (f Folder) until() time.Time { return time.Now().Add(cmp.Or(f.Slice, defaultSlice)) }

// Check returns an error where a directory can't be emptied now.
func (f Folder) Check(path string) error {
	dir, err := f.open(path)
	if err != nil {
		return err
	}
	defer dir.Close()
	return refuseInUse(dir)
}

// Empty removes all that a directory holds, for ever, and leaves the directory. It
// follows no symlink and crosses into no mount.
//
// It first moves all into a directory of this attempt, and removes it there. An attempt that finishes
// removes the directories of all other attempts, and the kernel moves nothing into a removed
// directory. So a late attempt, of an agent that seemed dead, can't remove what the next claim has
// written. Its directory was made before its confirmation, and so before any later attempt was
// confirmed.
//
// At the end of the slice it is filetree.ErrUnfinished: Continue removes the rest of what was moved.
func (f Folder) Empty(ctx context.Context, path, attempt string, confirm func(context.Context) error) error {
	dir, err := f.open(path)
	if err != nil {
		return err
	}
	defer dir.Close()
	if err := refuseInUse(dir); err != nil {
		return err
	}
	mine, err := makeAside(dir, attempt)
	if err != nil {
		return err
	}
	defer mine.Close()
	if err := confirm(ctx); err != nil {
		return errors.Join(err, removeAside(dir, attempt))
	}
	until := f.until()
	moved := moveAside(ctx, dir, mine, attempt, until)
	if moved != nil && !errors.Is(moved, filetree.ErrUnfinished) {
		return moved
	}
	// Also without time to move all: else attempts could move for ever, and never remove.
	if err := filetree.RemoveTreeUntil(ctx, dir, asideDir, until); err != nil {
		return err
	}
	if moved != nil {
		return moved
	}
	return checkEmptied(dir)
}

// moveAside moves all into an attempt's directory.
func moveAside(ctx context.Context, dir, mine *os.File, attempt string, until time.Time) error {
	left := takeOver(ctx, dir, mine, attempt, until)
	if left != nil && !errors.Is(left, filetree.ErrUnfinished) {
		return left
	}
	if err := filetree.MoveAll(ctx, dir, mine, asideDir, until); err != nil {
		return err
	}
	return left
}

// Continue removes what Empty moved into an attempt's directory, and nothing else: that needs no
// other approval. It is filetree.ErrUnfinished while there is more.
func (f Folder) Continue(ctx context.Context, path, attempt string) error {
	dir, err := f.open(path)
	if err != nil {
		return err
	}
	defer dir.Close()
	all, err := safepath.OpenAt(dir, asideDir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer all.Close()
	return filetree.RemoveTreeUntil(ctx, all, attempt, f.until())
}

// takeOver moves what earlier attempts left into this one's directory, so that Continue removes
// that, too. Some file systems can't move some of it: that stays for Empty.
func takeOver(ctx context.Context, dir, mine *os.File, attempt string, until time.Time) error {
	all, err := safepath.OpenAt(dir, asideDir)
	if err != nil {
		return err
	}
	defer all.Close()
	left, err := filetree.OpenOrMakeDir(mine, asideDir)
	if err != nil {
		return err
	}
	defer left.Close()
	err = filetree.MoveAll(ctx, all, left, attempt, until)
	if errors.Is(err, unix.EXDEV) {
		return nil
	}
	return err
}

// open opens a directory below the root.
func (f Folder) open(path string) (*os.File, error) {
	switch {
	case f.Root == "":
		return nil, errNoRoot
	case filepath.Clean(path) == f.Root:
		return nil, errIsRoot
	default:
		return safepath.OpenBeneath(f.Root, path)
	}
}

func refuseInUse(dir *os.File) error {
	points, err := mount.Visible(dir)
	if err != nil {
		return err
	}
	if len(points) > 0 {
		return fmt.Errorf("%w: see the mount at %s", errInUse, points[0].Path)
	}
	return nil
}

// makeAside makes an attempt's directory, and opens it.
func makeAside(dir *os.File, attempt string) (*os.File, error) {
	all, err := filetree.OpenOrMakeDir(dir, asideDir)
	if err != nil {
		return nil, err
	}
	defer all.Close()
	return filetree.OpenOrMakeDir(all, attempt)
}

// removeAside removes the empty directories of an attempt.
func removeAside(dir *os.File, attempt string) error {
	all, err := safepath.OpenAt(dir, asideDir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer all.Close()
	return errors.Join(filetree.RemoveDir(all, attempt), filetree.RemoveDir(dir, asideDir))
}

// checkEmptied checks that nothing is left, and syncs that: after a loss of power, the next claim
// would see the data of the last.
func checkEmptied(dir *os.File) error {
	empty, err := filetree.IsEmpty(dir)
	if err == nil && !empty {
		err = errFilledAgain
	}
	if err != nil {
		return err
	}
	return safepath.SyncDir(dir)
}
