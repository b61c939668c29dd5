package filetree

import (
	"context"
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stowage-dev/stowage/internal/mount/safepath"
)

// ErrUnfinished says that a removal stopped because of the time. What was removed stays
// removed, and a repeat goes on from there.
var ErrUnfinished = errors.New("not all of it could be removed so far")

// RemoveTreeUntil does what RemoveTree does, and after the time until it stops between two
// files: that is ErrUnfinished. However little time there is, each call gets on. The zero
// time is no limit.
func RemoveTreeUntil(ctx context.Context, parent *os.File, name string, until time.Time) error {
	top, err := safepath.OpenToRead(parent, name)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer top.Close()
	if err := refuseMounts(top); err != nil {
		return err
	}
	removal := removal{ctx: ctx, top: top, until: until}
	if err := removal.empty(top, 1); err != nil {
		return err
	}
	return unlink(parent, name, unix.AT_REMOVEDIR)
}

// removal is one tree that is being removed.
type removal struct {
	ctx   context.Context
	top   *os.File
	until time.Time
	// done counts what was removed or moved to the top, and steps the directories that were
	// entered.
	done, steps int
}

// isLate says whether the time is up.
func (r *removal) isLate() bool { return !r.until.IsZero() && time.Now().After(r.until) }

// get counts one entry that is gone from where it was, and returns ErrUnfinished once the
// time is up. The way down to the entries of a deep tree may take all of the time: there, as
// much is removed as the way was long, or no call would ever get on.
func (r *removal) get() error {
	r.done++
	if r.done > r.steps && r.isLate() {
		return ErrUnfinished
	}
	return nil
}
