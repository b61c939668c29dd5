package inspect

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"syscall"
	"time"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/nfs/tree"
)

const (
	// maxProgress exceeds the size of any position: 64 names of 1,023 bytes, in base64.
	maxProgress = 128 << 10
	// progressKept is the age from which progress is outdated.
	progressKept = 24 * time.Hour
)

// Inspection checks whether all of a directory can be removed, if the server maps root to another
// user. It takes as many calls as it needs. A file on the share has the progress for the next call,
// also for that of the next leader.
type Inspection struct {
	// File has the progress; it is written under a name beginning with Aside first.
	File, Aside string
	// Of identifies what is inspected: progress of anything else is ignored.
	Of string
	// Self is the user to which the server maps the manager.
	Self  uint32
	Until time.Time
	// recorded is set once the file says that all was inspected.
	recorded bool
}

// progress is the progress of an inspection.
type progress struct {
	Of       string        `json:"of"`
	Written  time.Time     `json:"written"`
	Done     bool          `json:"done,omitempty"`
	Position tree.Position `json:"place"`
}

// Run continues the inspection, and returns backend.InProgress until all is inspected. An entry that
// can't be removed is fs.ErrPermission in each call, until its permissions are changed.
func (l *Inspection) Run(ctx context.Context, root, dir tree.Dir) error {
	at, err := l.load(ctx, root)
	if l.recorded = at.Done; err != nil || at.Done {
		return err
	}
	before := at.Position.Seen
	err = tree.CheckRemovable(ctx, dir, l.Self, &at.Position, l.Until)
	if err != nil && at.Position.Seen != before {
		// Saved after any error, so that each call makes progress.
		if failed := l.save(ctx, root, at); failed != nil {
			return failed
		}
	}
	switch {
	case errors.Is(err, tree.ErrUnfinished):
		return backend.InProgress.Errorf("the server makes user %d of root, so all is inspected before anything is removed: "+
			"%d or more files and directories so far", l.Self, rounded(at.Position.Seen))
	case errors.Is(err, tree.ErrChanging):
		return backend.Unavailable.Errorf("the server makes user %d of root, so all is inspected before anything is removed, "+
			"and files come and go during the inspection: end what writes to it: %w", l.Self, err)
	}
	return err
}

// rounded rounds a count down to few values, so that a text with it seldom changes.
func rounded(count int64) int64 {
	step := int64(1)
	for step <= count/10 {
		step *= 10
	}
	for _, times := range []int64{5, 2} {
		if times*step <= count {
			return times * step
		}
	}
	return min(step, count)
}

// MarkDone records that all was inspected, for the calls that remove it.
func (l *Inspection) MarkDone(ctx context.Context, root tree.Dir) error {
	if l.recorded {
		return nil
	}
	return l.save(ctx, root, progress{Done: true})
}

// load reads the progress. In a directory that is recycled, the file may be anything: an unusable
// one is no progress.
func (l *Inspection) load(ctx context.Context, root tree.Dir) (progress, error) {
	data, err := tree.ReadFile(ctx, root, l.File, maxProgress)
	switch {
	case isUnreadable(err):
		return progress{}, nil
	case err != nil:
		return progress{}, fmt.Errorf("reading the progress of the inspection: %w", err)
	}
	return progressFrom(data, l.Of, time.Now()), nil
}

// progressFrom decodes progress; text that is invalid, or of another inspection, is no progress.
func progressFrom(data []byte, of string, now time.Time) progress {
	found := progress{}
	if err := json.Unmarshal(data, &found); err != nil || !found.valid(of, now) {
		return progress{}
	}
	return found
}

func (p *progress) valid(of string, now time.Time) bool {
	return p.Of == of && now.Sub(p.Written).Abs() < progressKept && p.Position.Valid()
}

// isUnreadable reports whether an error says that no small file can be read there, now or later.
func isUnreadable(err error) bool {
	for _, errno := range []syscall.Errno{
		syscall.ENOENT, syscall.EINVAL, syscall.EFBIG, syscall.ELOOP, syscall.EACCES, syscall.EPERM,
		syscall.ENOTDIR, syscall.EISDIR, syscall.ENXIO,
	} {
		if errors.Is(err, errno) {
			return true
		}
	}
	return false
}

func (l *Inspection) save(ctx context.Context, root tree.Dir, at progress) error {
	at.Of, at.Written = l.Of, time.Now()
	data, err := json.Marshal(at)
	if err != nil {
		return fmt.Errorf("writing the progress of the inspection: %w", err)
	}
	via := fmt.Sprintf("%s-%x", l.Aside, rand.Uint64())
	err = l.clearPath(ctx, root)
	if err == nil {
		err = tree.WriteFile(ctx, root, l.File, via, data)
	}
	if err != nil {
		return fmt.Errorf("writing the progress of the inspection: %w", err)
	}
	return nil
}

// clearPath moves a directory away that has the file's name: a tenant may have made it, and no file
// can replace it.
func (l *Inspection) clearPath(ctx context.Context, root tree.Dir) error {
	there, err := tree.Lookup(ctx, root, l.File)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil || there.Type != tree.Directory:
		return err
	}
	return tree.Move(ctx, root, l.File, fmt.Sprintf("%s-%x", l.File, rand.Uint64()))
}
