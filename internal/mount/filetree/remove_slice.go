package filetree

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/mount/safepath"
)

// ErrUnfinished says that a removal stopped because of the time. What was removed stays
// removed, and a repeat goes on from there.
var ErrUnfinished = errors.New("not all of it could be removed so far")

// removal is one tree that is being removed.
type removal struct {
	ctx   context.Context
	top   *os.File
	until time.Time
	// done counts what was removed or moved to the top, and steps the directories that were
	// entered.
	done, steps int
}

// isLate reports whether the time is up.
func (r *removal) isLate() bool { return !r.until.IsZero() && time.Now().After(r.until) }

// count counts one entry that was removed or moved, and returns ErrUnfinished once the time is up. In
// a deep tree, the way down may take all of the time. There, a call removes as many entries as it
// entered directories, or no call would ever make progress.
func (r *removal) count() error {
	r.done++
	if r.done > r.steps && r.isLate() {
		return ErrUnfinished
	}
	return nil
}

// batch lists the first names in a directory: from the start each time, because removing moves
// what a listing continues with.
func (r *removal) batch(dir *os.File) ([]string, error) {
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

// refuseMounts is an error if the mount table shows a mount in the directory.
func refuseMounts(dir *os.File) error {
	path, err := safepath.PathOf(dir)
	if err != nil {
		return err
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
