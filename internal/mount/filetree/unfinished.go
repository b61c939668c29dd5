package filetree

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stowage-dev/stowage/internal/mount/safepath"
)

// BeginDir makes an empty directory, for root alone, and opens it. It gets its name
// from FinishDir, once all that belongs in it is there. What a crash left of an
// earlier attempt is removed.
func BeginDir(ctx context.Context, parent *os.File, name string) (*os.File, error) {
	if err := RemoveUnfinished(ctx, parent, name); err != nil {
		return nil, err
	}
	unfinished := safepath.UnfinishedPrefix + name
	if err := unix.Mkdirat(int(parent.Fd()), unfinished, 0o700); err != nil {
		return nil, &os.PathError{Op: "making directory", Path: filepath.Join(parent.Name(), unfinished), Err: err}
	}
	return safepath.OpenAt(parent, unfinished)
}

// FinishDir gives a directory of BeginDir its name, which must be free. Open files in it stay
// valid.
func FinishDir(parent *os.File, name string) error {
	at := int(parent.Fd())
	if err := unix.Renameat2(at, safepath.UnfinishedPrefix+name, at, name, unix.RENAME_NOREPLACE); err != nil {
		return &os.PathError{Op: "finishing directory", Path: filepath.Join(parent.Name(), name), Err: err}
	}
	return nil
}

// RemoveUnfinished removes what a crash in the middle of EnsureDir, or between
// BeginDir and FinishDir, left.
func RemoveUnfinished(ctx context.Context, parent *os.File, name string) error {
	return RemoveUnfinishedUntil(ctx, parent, name, time.Time{})
}

// RemoveUnfinishedUntil does what RemoveUnfinished does, and after the time until it stops,
// as RemoveTreeUntil does.
func RemoveUnfinishedUntil(ctx context.Context, parent *os.File, name string, until time.Time) error {
	if err := RemoveTreeUntil(ctx, parent, safepath.UnfinishedPrefix+name, until); err != nil {
		return fmt.Errorf("removing what an earlier attempt left: %w", err)
	}
	return nil
}
