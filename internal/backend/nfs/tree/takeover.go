package tree

import (
	"context"
	"errors"
)

// earlierCopies are copies that were given up: for each directory that is open, its directories in them.
type earlierCopies struct{ open [][]Dir }

func (e *earlierCopies) current() []Dir { return e.open[len(e.open)-1] }

// enter opens a directory in the earlier copies of the current one, where it exists. Leave closes them.
func (e *earlierCopies) enter(ctx context.Context, name string) (leave func(), err error) {
	var opened []Dir
	for _, earlier := range e.current() {
		next, failed := earlier.Open(ctx, name)
		if failed == nil {
			opened = append(opened, next)
		} else if err == nil {
			err = fatal(ctx, failed)
		}
	}
	e.open = append(e.open, opened)
	return func() {
		e.open = e.open[:len(e.open)-1]
		for _, one := range opened {
			_ = one.Close()
		}
	}, err
}

// take moves a file from an earlier copy, if it is complete there and the source is still the same, and reports whether
// it did. The times of a file are set last, so they say that it is complete. A file that is of no use is removed: it takes
// room, and no copy with it is ever completed.
func (e *earlierCopies) take(ctx context.Context, to Dir, name string, source Info) (bool, error) {
	for _, earlier := range e.current() {
		taken, err := takeFrom(ctx, earlier, to, name, source)
		if err = fatal(ctx, err); taken || err != nil {
			return taken, err
		}
	}
	return false, nil
}

// fatal returns an error after which nothing can go on. After another one, the file is copied.
func fatal(ctx context.Context, err error) error {
	if errors.Is(err, ErrLost) {
		return err
	}
	return ctx.Err()
}

func takeFrom(ctx context.Context, earlier, to Dir, name string, source Info) (bool, error) {
	had, err := earlier.Lookup(ctx, name)
	switch {
	case err != nil || had.Type == Directory:
		return false, err
	case !isCopyOf(had, source):
		return false, earlier.RemoveFile(ctx, name)
	}
	if err := earlier.Rename(ctx, name, to, name); err != nil {
		return false, err
	}
	// An attempt that is still at work may have made the file again just before.
	taken, err := isComplete(ctx, to, name, source)
	if taken {
		return true, nil
	}
	return false, errors.Join(err, to.RemoveFile(ctx, name))
}

// isComplete reports whether a copy has a file already.
func isComplete(ctx context.Context, to Dir, name string, source Info) (bool, error) {
	had, err := to.Lookup(ctx, name)
	if isGone(err) {
		return false, nil
	}
	return err == nil && isCopyOf(had, source), err
}

// isCopyOf reports whether a file is a complete copy of another: it has all that a copy gets at its end.
func isCopyOf(file, source Info) bool {
	return file.Type == File && file.Size == source.Size && file.Access == source.Access && file.Modified.Equal(source.Modified)
}
