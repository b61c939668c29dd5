package tree

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"syscall"
	"time"
)

const (
	sticky = 0o1000
	// maxRestarts is how often a check restarts the listing of a directory before it reports that
	// the tree is changing.
	maxRestarts = 20
)

// ErrChanging is the error of the check of a tree that changes again and again. The next call still
// continues the check.
var ErrChanging = errors.New("it changes while it is inspected")

// Position is the position of a check in a tree, also for another process. Its zero value is the
// beginning. It has at most maxDepth steps, whatever the tree.
type Position struct {
	// Steps lead to the directory that is being listed, from the top on.
	Steps []Step `json:"steps,omitempty"`
	// Seen counts the entries that were checked.
	Seen int64 `json:"seen,omitempty"`
	// Restarts counts how often the listing of a directory restarted, because it changed.
	Restarts int `json:"restarts,omitempty"`
}

// Step is a directory on the path to a position.
type Step struct {
	// Name in the directory of the step before. The top has none.
	Name []byte `json:"name,omitempty"`
	// At is where the listing of the directory continues.
	At Cursor `json:"at"`
}

// Valid reports whether a check can continue at a position. A file that others can write may say
// anything.
func (p *Position) Valid() bool {
	if len(p.Steps) > maxDepth || p.Seen < 0 || p.Restarts < 0 {
		return false
	}
	for i, step := range p.Steps {
		if i == 0 && len(step.Name) > 0 || i > 0 && CheckName(string(step.Name)) != nil || len(step.Name) > MaxName {
			return false
		}
	}
	return true
}

// CheckRemovable returns fs.ErrPermission if the caller, which isn't root, may not remove a
// directory's content. It checks maxDepth directories deep. After the time until, it stops between
// two entries with ErrUnfinished; the next call continues at the same position, also after any other
// error.
func CheckRemovable(ctx context.Context, top Dir, self uint32, at *Position, until time.Time) error {
	if len(at.Steps) == 0 {
		at.Steps = []Step{{}}
	}
	checking := check{self: self, at: at, until: until}
	return checking.walk(ctx, top, 0)
}

type check struct {
	self  uint32
	at    *Position
	until time.Time
}

// walk checks a directory from the position of its step.
func (c *check) walk(ctx context.Context, dir Dir, depth int) error {
	if depth+1 < len(c.at.Steps) {
		// An earlier call ended within.
		if err := c.enter(ctx, dir, depth+1); err != nil {
			return err
		}
	}
	checked := false
	for entry, err := range dir.List(ctx, c.at.Steps[depth].At) {
		if err == nil && !checked {
			// An empty directory needs no rights of its own.
			checked, err = true, c.checkWritable(ctx, dir)
		}
		if err == nil {
			err = c.visit(ctx, dir, entry, depth)
		}
		if err != nil {
			return c.restart(err, depth)
		}
		// After the first entry, so that each call makes progress.
		if time.Now().After(c.until) {
			return ErrUnfinished
		}
	}
	return nil
}

// visit checks one entry. The position moves behind the entry before the check enters it, so a later
// call continues behind it.
func (c *check) visit(ctx context.Context, dir Dir, entry Entry, depth int) error {
	kind, err := typeOf(ctx, dir, entry)
	if ignoreNotExist(err) != nil {
		return err
	}
	c.at.Steps[depth].At = entry.Next
	c.at.Seen++
	if kind != Directory || depth+1 >= maxDepth {
		return nil
	}
	c.at.Steps = append(c.at.Steps, Step{Name: []byte(entry.Name)})
	return c.enter(ctx, dir, depth+1)
}

// enter checks the directory of a step, and ends the step. A directory that doesn't exist any more
// passes.
func (c *check) enter(ctx context.Context, parent Dir, depth int) error {
	child, err := parent.Open(ctx, string(c.at.Steps[depth].Name))
	if err == nil {
		err = c.walk(ctx, child, depth)
		child.Close()
	}
	if err == nil || errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		c.at.Steps = c.at.Steps[:depth]
		return nil
	}
	return err
}

// restart makes the next call restart a listing that can't continue.
func (c *check) restart(err error, depth int) error {
	if !errors.Is(err, ErrCursor) && !errors.Is(err, syscall.ESTALE) || depth+1 != len(c.at.Steps) {
		return err
	}
	c.at.Steps[depth].At = Cursor{}
	c.at.Restarts++
	if c.at.Restarts > maxRestarts {
		return ErrChanging
	}
	return ErrUnfinished
}

func (c *check) checkWritable(ctx context.Context, dir Dir) error {
	info, err := dir.Stat(ctx)
	if err != nil {
		return err
	}
	writable, err := dir.Writable(ctx)
	if err != nil {
		return err
	}
	if !writable || (info.Mode&sticky != 0 && info.UID != c.self) {
		return fmt.Errorf("%s is a directory of user %d with mode %#o: %w", c.path(), info.UID, info.Mode, fs.ErrPermission)
	}
	return nil
}

// path is the path of the position from the top, for people.
func (c *check) path() string {
	joined := "."
	for _, step := range c.at.Steps[1:] {
		joined = path.Join(joined, string(step.Name))
	}
	return Printable(joined)
}
