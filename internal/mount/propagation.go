package mount

import (
	"errors"
	"fmt"

	"github.com/stowage-dev/stowage/internal/mount/safepath"
)

// ErrNotShared says that the kernel tells no other mount of what is mounted in a directory.
var ErrNotShared = errors.New("what is mounted there shows nowhere else")

// ErrShows says that a tree of mounts shows a folder which must be left out of it.
var ErrShows = errors.New("the tree shows a folder that must be left out")

// CheckShared is ErrNotShared if nobody outside of this mount namespace sees what is mounted
// in a folder.
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
