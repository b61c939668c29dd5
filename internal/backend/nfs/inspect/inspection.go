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
	// maxProgress is more than a place has: 64 names of 1,023 bytes, written in base64.
	maxProgress = 128 << 10
	// progressKept is the age at which what was looked at long ago is looked at again.
	progressKept = 24 * time.Hour
)

// Inspection looks through a directory whose server doesn't let the manager act as root,
// so that nothing is half removed. It takes as many calls as it needs: how far it is
// lies in a file on the share, where the next call finds it, also one of the next leader.
type Inspection struct {
	// File has the progress, aside is where it is written first.
	File, Aside string
	// Of is what is looked through: progress of something else counts for nothing.
	Of string
	// Self is the user that the server makes of the manager.
	Self  uint32
	Until time.Time
	// noted is set once the file says that all was looked through.
	recorded bool
}

// progress is how far a look is.
type progress struct {
	Of       string        `json:"of"`
	Written  time.Time     `json:"written"`
	Done     bool          `json:"done,omitempty"`
	Position tree.Position `json:"place"`
}

// Through looks on, and is backend.InProgress while that isn't all. What other users
// keep from being removed is fs.ErrPermission, again and again until it is mended.
func (l *Inspection) Run(ctx context.Context, root, dir tree.Dir) error {
	at, err := l.load(ctx, root)
	if l.recorded = at.Done; err != nil || at.Done {
		return err
	}
	before := at.Position.Seen
	err = tree.CheckRemovable(ctx, dir, l.Self, &at.Position, l.Until)
	if err != nil && at.Position.Seen != before {
		// It is kept after any error, so that no call has been made for nothing.
		if failed := l.save(ctx, root, at); failed != nil {
			return failed
		}
	}
	switch {
	case errors.Is(err, tree.ErrUnfinished):
		return backend.InProgress.Errorf("the server makes user %d of root, so all is looked through before anything is removed: "+
			"%d or more files and directories so far", l.Self, rounded(at.Position.Seen))
	case errors.Is(err, tree.ErrChanging):
		return backend.Unavailable.Errorf("the server makes user %d of root, so all is looked through before anything is removed, "+
			"and files come and go meanwhile: end what writes to it: %w", l.Self, err)
	}
	return err
}

// roughly is a number that is counted up in few steps, so that a text with it stays the
// same for long.
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

// Done notes that all was looked through, for the calls that remove it.
func (l *Inspection) MarkDone(ctx context.Context, root tree.Dir) error {
	if l.recorded {
		return nil
	}
	return l.save(ctx, root, progress{Done: true})
}

// load reads how far the look is. In a directory that is recycled, the file may be
// anything: what can't be gone on from is none.
func (l *Inspection) load(ctx context.Context, root tree.Dir) (progress, error) {
	data, err := tree.ReadFile(ctx, root, l.File, maxProgress)
	switch {
	case isUnreadable(err):
		return progress{}, nil
	case err != nil:
		return progress{}, fmt.Errorf("reading how much was looked through: %w", err)
	}
	return progressFrom(data, l.Of, time.Now()), nil
}

// progressFrom reads progress; what makes no sense, or is of something else, is none.
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

// isNoFile reports whether an error says that a small file can't be read there, now or
// later.
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
		return fmt.Errorf("writing how much was looked through: %w", err)
	}
	via := fmt.Sprintf("%s-%x", l.Aside, rand.Uint64())
	err = l.clearPath(ctx, root)
	if err == nil {
		err = tree.WriteFile(ctx, root, l.File, via, data)
	}
	if err != nil {
		return fmt.Errorf("writing how much was looked through: %w", err)
	}
	return nil
}

// clearWay moves away what no file can take the place of: a tenant may have made a
// directory of that name.
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
