package mount

import (
	"errors"
	"fmt"

	"github.com/stowage-dev/stowage/internal/mount/safepath"
)

// ErrNotShared says that a directory lies in a mount that isn't shared: what is mounted there
// propagates nowhere.
var ErrNotShared = errors.New("what is mounted there shows nowhere else")

// ErrShows says that a tree of mounts shows a folder which must be left out of it.
var ErrShows = errors.New("the tree shows a folder that must be left out")

// CheckShared returns ErrNotShared if mounts in a folder don't propagate out of this mount
// namespace.
func CheckShared(folder string) error {
	opened, err := safepath.OpenHost(folder)
	if err != nil {
		return err
	}
	defer opened.Close()
	table, err := readTable()
	if err != nil {
		return err
	}
	there, err := originOf(opened, table)
	if err == nil && there.mount.Group == 0 {
		err = fmt.Errorf("%s lies in the mount at %s: %w", there.path, there.mount.Path, ErrNotShared)
	}
	return err
}
