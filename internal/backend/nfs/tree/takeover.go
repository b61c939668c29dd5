package tree

import "context"

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
		} else if err == nil && !isGone(failed) {
			err = failed
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
// it did. The times of a file are set last, so they say that it is complete.
func (e *earlierCopies) take(ctx context.Context, to Dir, name string, source Info) (bool, error) {
	for _, earlier := range e.current() {
		taken, err := takeFrom(ctx, earlier, to, name, source)
		if taken || err != nil && !isGone(err) {
			return taken, err
		}
	}
	return false, nil
}

func takeFrom(ctx context.Context, earlier, to Dir, name string, source Info) (bool, error) {
	had, err := earlier.Lookup(ctx, name)
	if err != nil || !isCopyOf(had, source) {
		return false, err
	}
	if err := earlier.Rename(ctx, name, to, name); err != nil {
		return false, err
	}
	// An attempt that is still at work may have made the file again just before.
	moved, err := to.Lookup(ctx, name)
	if err != nil || isCopyOf(moved, source) {
		return err == nil, err
	}
	return false, to.RemoveFile(ctx, name)
}

// isCopyOf reports whether a file is a complete copy of another: it has all that a copy gets at its end.
func isCopyOf(file, source Info) bool {
	return file.Type == File && file.Size == source.Size && file.Access == source.Access && file.Modified.Equal(source.Modified)
}
