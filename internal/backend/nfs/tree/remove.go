package tree

import (
	"context"
	"crypto/rand"
	"errors"
	"io/fs"
	"time"
)

const (
	// batch is how many names are read before they are removed, in each directory that
	// is open.
	batch = 256
	// maxDepth is how many directories are open at once. A tenant can nest directories deeper than
	// memory or open files suffice for.
	maxDepth = 64
)

// ErrUnfinished is the error of a removal that ran out of time.
var ErrUnfinished = errors.New("there was no time to remove all of it")

// RemoveTree removes a directory with its content. It removes symlinks, and never follows them. A
// directory of another file system is ErrOtherFileSystem, and stays with its parents. An absent
// directory is a success. After the time until, it stops between two files. It can be repeated after
// any error, and continues where it was.
func RemoveTree(ctx context.Context, parent Dir, name string, until time.Time) error {
	top, err := parent.Open(ctx, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer top.Close()
	removal := removal{top: top, until: until}
	if err := removal.empty(ctx, top, 1); err != nil {
		return err
	}
	return ignoreNotExist(parent.RemoveDir(ctx, name))
}

// removal is one tree that is being removed.
type removal struct {
	top   Dir
	until time.Time
	// except are names that stay in the top.
	except []string
}

// empty removes the content of a directory.
func (r *removal) empty(ctx context.Context, dir Dir, depth int) error {
	for {
		entries, err := firstEntries(ctx, dir)
		if depth == 1 {
			entries = without(entries, r.except...)
		}
		if err != nil || len(entries) == 0 {
			return err
		}
		for _, entry := range entries {
			if err := r.remove(ctx, dir, entry, depth); err != nil {
				return err
			}
			// After the first entry, so that each call makes progress.
			if time.Now().After(r.until) {
				return ErrUnfinished
			}
		}
	}
}

// remove removes one entry of a directory.
func (r *removal) remove(ctx context.Context, dir Dir, entry Entry, depth int) error {
	kind, err := typeOf(ctx, dir, entry)
	if err != nil {
		return ignoreNotExist(err)
	}
	if kind != Directory {
		return ignoreNotExist(dir.RemoveFile(ctx, entry.Name))
	}
	child, err := dir.Open(ctx, entry.Name)
	if err != nil {
		return ignoreNotExist(err)
	}
	defer child.Close()
	if depth >= maxDepth {
		return r.moveToTop(ctx, dir, entry.Name)
	}
	if err := r.empty(ctx, child, depth+1); err != nil {
		return err
	}
	return ignoreNotExist(dir.RemoveDir(ctx, entry.Name))
}

// moveToTop moves a directory to the top of the tree, where a later pass removes it. A tenant can't
// guess the name.
func (r *removal) moveToTop(ctx context.Context, dir Dir, name string) error {
	return dir.Rename(ctx, name, r.top, ".moved-"+rand.Text())
}

// firstEntries lists the first entries of a directory: removing entries changes where a listing
// would continue.
func firstEntries(ctx context.Context, dir Dir) ([]Entry, error) {
	entries := make([]Entry, 0, batch)
	for entry, err := range dir.List(ctx, Cursor{}) {
		if err != nil {
			return nil, err
		}
		entries = append(entries, entry)
		if len(entries) == batch {
			break
		}
	}
	return entries, nil
}

func typeOf(ctx context.Context, dir Dir, entry Entry) (Type, error) {
	if entry.Type != Unknown {
		return entry.Type, nil
	}
	info, err := dir.Lookup(ctx, entry.Name)
	return info.Type, err
}

// ignoreNotExist drops the error for what was to be removed and doesn't exist.
func ignoreNotExist(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
