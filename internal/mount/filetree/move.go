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

// MoveAll moves all entries of an open directory, but for one name, into another directory of
// the same file system. It moves symlinks and never follows them. A mount point is ErrMounted,
// and stays. A target that was removed is fs.ErrNotExist, also while processes have it open:
// then nothing moves any more. After the time until it stops, as RemoveTreeUntil does.
func MoveAll(ctx context.Context, from, to *os.File, except string, until time.Time) error {
	for {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("moving what is in %s: %w", from.Name(), err)
		}
		names, err := firstNames(from, except)
		if err != nil || len(names) == 0 {
			return err
		}
		for _, name := range names {
			if err := move(from, to, name); err != nil {
				return err
			}
			if !until.IsZero() && time.Now().After(until) {
				return ErrUnfinished
			}
		}
	}
}

// IsEmpty reports whether an open directory holds nothing.
func IsEmpty(dir *os.File) (bool, error) {
	names, err := firstNames(dir, "")
	return len(names) == 0, err
}

// OpenOrMakeDir opens the directory name in an open one. Where it is missing, it makes the
// directory, for its owner alone. Anything else of that name gets another, random name.
func OpenOrMakeDir(parent *os.File, name string) (*os.File, error) {
	found, err := safepath.OpenAt(parent, name)
	if errors.Is(err, safepath.ErrOutside) || errors.Is(err, unix.ENOTDIR) {
		if err := rename(parent, name, name+"-"+rand.Text()); err != nil {
			return nil, err
		}
		err = os.ErrNotExist
	}
	if !errors.Is(err, os.ErrNotExist) {
		return found, err
	}
	if err := unix.Mkdirat(int(parent.Fd()), name, 0o700); err != nil && !errors.Is(err, unix.EEXIST) {
		return nil, &os.PathError{Op: "making directory", Path: safepath.NameOf(parent, name), Err: err}
	}
	return safepath.OpenAt(parent, name)
}

func rename(parent *os.File, from, to string) error {
	at := int(parent.Fd())
	if err := unix.Renameat2(at, from, at, to, unix.RENAME_NOREPLACE); err != nil {
		return &os.PathError{Op: "moving away", Path: safepath.NameOf(parent, from), Err: err}
	}
	return nil
}

// RemoveDir removes the directory name from an open one, unless it holds something.
func RemoveDir(parent *os.File, name string) error {
	err := unlink(parent, name, unix.AT_REMOVEDIR)
	if errors.Is(err, unix.ENOTEMPTY) {
		return nil
	}
	return err
}

// firstNames are some of the names in a directory, but for one: none if there are no
// others.
func firstNames(dir *os.File, except string) ([]string, error) {
	readable, err := safepath.Reopen(dir)
	if err != nil {
		return nil, err
	}
	defer readable.Close()
	names := make([]string, 0, readBatch)
	for {
		batch, err := readable.Readdirnames(readBatch)
		for _, name := range batch {
			if name != except {
				names = append(names, name)
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return names, nil
		case err != nil:
			return nil, fmt.Errorf("listing %s: %w", dir.Name(), err)
		case len(names) > 0:
			return names, nil
		}
	}
}

// move moves one name; one that is gone from where it was is a success.
func move(from, to *os.File, name string) error {
	err := unix.Renameat2(int(from.Fd()), name, int(to.Fd()), name, unix.RENAME_NOREPLACE)
	path := filepath.Join(from.Name(), name)
	switch {
	case err == nil || errors.Is(err, unix.ENOENT) && isGone(from, name):
		return nil
	case errors.Is(err, unix.EBUSY):
		return fmt.Errorf("moving %s: %w", path, mount.ErrMounted)
	default:
		return &os.PathError{Op: "moving", Path: path, Err: err}
	}
}

func isGone(dir *os.File, name string) bool {
	var stat unix.Stat_t
	return errors.Is(unix.Fstatat(int(dir.Fd()), name, &stat, unix.AT_SYMLINK_NOFOLLOW), unix.ENOENT)
}
