package filetree

import (
	"context"
	"os"
)

// EmptyLate empties a directory like RemoveTree, as if whatever is mounted in it
// had been mounted after the look at the mount table.
func EmptyLate(ctx context.Context, dir *os.File) error {
	return (&removal{ctx: ctx, top: dir}).empty(dir, 1)
}
