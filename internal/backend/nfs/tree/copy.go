package tree

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"
)

// chunk is how much of a file is in memory.
const chunk = 128 << 10

var (
	// ErrTooDeep is a tree whose directories nest deeper than can be copied.
	ErrTooDeep = fmt.Errorf("its directories nest deeper than %d", maxDepth)
	// ErrTooLarge is a file that is said to be larger than the whole share.
	ErrTooLarge = errors.New("it has a file that is larger than the share")
)

// CopyPosition is how far a copy of a tree is. Its zero value is the beginning. It has at most maxDepth names,
// whatever the tree.
type CopyPosition struct {
	Position
	// File is the file that is being copied, in the directory of the last step. Offset is how much of it
	// is on the disk.
	File   []byte
	Offset int64
	// Bytes counts those that were copied.
	Bytes int64
}

// Copy copies the content of a directory to another.
type Copy struct {
	// From is copied to To, which nothing else writes.
	From, To Dir
	// Earlier are copies of From that were given up. Files that are complete there are moved to To, if they are
	// still those of From.
	Earlier []Dir
	// Most is how many bytes a file may have; 0: any number.
	Most uint64
	// Until is when a call ends.
	Until time.Time
}

// Run copies directories, files and symlinks, with owners, modes and times. Holes stay holes. A file with several
// names becomes several files. Pipes, sockets and devices are left out. What is removed from the source in between
// may be missing.
//
// After the time Until, it stops with ErrUnfinished; the next call continues, also after any other error. What
// the position counts as copied is on the disk.
func (c Copy) Run(ctx context.Context, at *CopyPosition) error {
	if len(at.Steps) == 0 {
		at.Steps = []Step{{}}
	}
	run := copying{at: at, most: c.Most, until: c.Until, buffer: make([]byte, chunk), earlier: earlierCopies{[][]Dir{c.Earlier}}}
	return run.walk(ctx, c.From, c.To, 0)
}

type copying struct {
	at      *CopyPosition
	most    uint64
	until   time.Time
	buffer  []byte
	earlier earlierCopies
}

// walk copies a directory from the position of its step.
func (c *copying) walk(ctx context.Context, from, to Dir, depth int) error {
	var err error
	if depth+1 < len(c.at.Steps) {
		// An earlier call ended within.
		err = c.enter(ctx, from, to, depth+1)
	} else if len(c.at.File) > 0 {
		err = c.file(ctx, from, to, true)
	}
	if err != nil {
		return err
	}
	for entry, err := range from.List(ctx, c.at.Steps[depth].At) {
		if err == nil {
			err = c.entry(ctx, from, to, entry, depth)
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

// entry copies one entry. The position moves behind it only where the rest of it has a position of its own, or
// nothing is left to do: a later call skips what is behind the position.
func (c *copying) entry(ctx context.Context, from, to Dir, entry Entry, depth int) error {
	info, err := from.Lookup(ctx, entry.Name)
	if err != nil {
		return ignoreNotExist(err)
	}
	pass := func() {
		c.at.Steps[depth].At = entry.Next
		c.at.Seen++
	}
	switch info.Type {
	case Directory:
		if depth+1 >= maxDepth {
			return ErrTooDeep
		}
		if err := EnsureDir(ctx, to, entry.Name, 0o700); err != nil {
			return err
		}
		pass()
		c.at.Steps = append(c.at.Steps, Step{Name: []byte(entry.Name)})
		return c.enter(ctx, from, to, depth+1)
	case File:
		pass()
		c.at.File, c.at.Offset = []byte(entry.Name), 0
		taken, err := c.earlier.take(ctx, to, entry.Name, info)
		if c.at.Restarts > 0 && !taken && err == nil {
			taken, err = isComplete(ctx, to, entry.Name, info)
		}
		if taken {
			c.at.File = nil
			c.at.Bytes += int64(info.Size)
		}
		if taken || err != nil {
			return err
		}
		return c.file(ctx, from, to, c.at.Restarts > 0)
	case Symlink:
		if err := c.link(ctx, from, to, entry.Name, info); err != nil {
			return err
		}
	}
	pass()
	return nil
}

// enter copies the directory of a step, and ends the step. One that doesn't exist any more is done.
func (c *copying) enter(ctx context.Context, from, to Dir, depth int) error {
	name := string(c.at.Steps[depth].Name)
	source, err := from.Open(ctx, name)
	if isGone(err) {
		c.at.Steps, c.at.File = c.at.Steps[:depth], nil
		return nil
	}
	if err != nil {
		return err
	}
	defer source.Close()
	target, err := to.Open(ctx, name)
	if err != nil {
		return err
	}
	defer target.Close()
	leave, err := c.earlier.enter(ctx, name)
	defer leave()
	if err != nil {
		return err
	}
	if err := c.walk(ctx, source, target, depth); err != nil {
		return err
	}
	info, err := source.Stat(ctx)
	if err == nil {
		err = to.SetInfo(ctx, name, info)
	}
	if err != nil {
		return err
	}
	c.at.Steps = c.at.Steps[:depth]
	return nil
}

// file copies what is left of the file that is being copied. Again says that some of it may be there. A file that is
// complete is never written again, but made again: another attempt may have moved it away.
func (c *copying) file(ctx context.Context, from, to Dir, again bool) error {
	name := string(c.at.File)
	info, err := from.Lookup(ctx, name)
	var source RegularFile
	if err == nil {
		source, err = from.OpenFile(ctx, name)
	}
	switch {
	case isGone(err) || errors.Is(err, syscall.EINVAL):
		c.at.File, c.at.Offset = nil, 0
		return ignoreNotExist(to.RemoveFile(ctx, name))
	case err != nil:
		return err
	}
	defer source.Close()
	if c.most > 0 && info.Size > c.most {
		return ErrTooLarge
	}
	if again && c.at.Offset == 0 {
		if err := ignoreNotExist(to.RemoveFile(ctx, name)); err != nil {
			return err
		}
	}
	target, err := to.MakeFile(ctx, name)
	if err != nil {
		return err
	}
	defer target.Close()
	if err := c.content(ctx, source, target); err != nil {
		return err
	}
	if err := to.SetInfo(ctx, name, info); err != nil {
		return err
	}
	c.at.File, c.at.Offset = nil, 0
	return nil
}

// content copies a file from the position's offset on. What is all zero isn't written: it is a hole.
func (c *copying) content(ctx context.Context, source, target RegularFile) error {
	end := c.at.Offset
	if err := target.Truncate(ctx, end); err != nil {
		return err
	}
	late := false
	for !late {
		read, err := source.ReadAt(ctx, c.buffer, end)
		if err != nil {
			return err
		}
		if read == 0 {
			break
		}
		if !isZero(c.buffer[:read]) {
			if err := target.WriteAt(ctx, c.buffer[:read], end); err != nil {
				return err
			}
		}
		end += int64(read)
		late = time.Now().After(c.until)
	}
	if err := errors.Join(target.Truncate(ctx, end), target.Sync(ctx)); err != nil {
		return err
	}
	c.at.Bytes += end - c.at.Offset
	c.at.Offset = end
	if late {
		return ErrUnfinished
	}
	return nil
}

// link copies a symlink, which an earlier call may have copied.
func (c *copying) link(ctx context.Context, from, to Dir, name string, info Info) error {
	text, err := from.ReadLink(ctx, name)
	switch {
	case isGone(err) || errors.Is(err, syscall.EINVAL):
		return nil
	case err != nil:
		return err
	}
	if err := to.MakeLink(ctx, name, text); err != nil {
		// Some servers refuse before they check whether the name exists.
		if there, lookup := to.ReadLink(ctx, name); lookup != nil || there != text {
			return err
		}
	}
	return to.SetInfo(ctx, name, info)
}

// restart makes the next call restart a listing that can't continue.
func (c *copying) restart(err error, depth int) error {
	if !errors.Is(err, ErrCursor) && !errors.Is(err, syscall.ESTALE) || depth+1 != len(c.at.Steps) {
		return err
	}
	c.at.Steps[depth].At, c.at.File, c.at.Offset = Cursor{}, nil, 0
	c.at.Restarts++
	if c.at.Restarts > maxRestarts {
		return ErrChanging
	}
	return ErrUnfinished
}

func isZero(data []byte) bool {
	for _, one := range data {
		if one != 0 {
			return false
		}
	}
	return true
}
