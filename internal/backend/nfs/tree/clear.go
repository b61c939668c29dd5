package tree

import (
	"context"
	"slices"
	"time"
)

// Empty removes the content of a directory, except some names, and leaves the directory itself. All
// else is as in RemoveTree.
func Empty(ctx context.Context, dir Dir, until time.Time, except ...string) error {
	emptying := removal{top: dir, except: except, until: until}
	return emptying.empty(ctx, dir, 1)
}

// MoveAll moves the content of a directory, except one name, to another directory, which is empty.
// After the time until it stops, as RemoveTree does.
func MoveAll(ctx context.Context, from Dir, except string, to Dir, until time.Time) error {
	for {
		// Always the first: moving changes what a listing would continue with.
		entries, err := firstEntries(ctx, from)
		if entries = without(entries, except); err != nil || len(entries) == 0 {
			return err
		}
		for _, entry := range entries {
			if err := from.Rename(ctx, entry.Name, to, entry.Name); err != nil {
				return err
			}
			if time.Now().After(until) {
				return ErrUnfinished
			}
		}
	}
}

func without(entries []Entry, except ...string) []Entry {
	return slices.DeleteFunc(entries, func(entry Entry) bool { return slices.Contains(except, entry.Name) })
}
