package mount

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/stowage-dev/stowage/internal/mount/safepath"
)

// Visible lists where the open directory, or a part of it, is mounted elsewhere, and what is
// mounted below it. An empty list says that no other mount reaches its files.
func Visible(dir *os.File) ([]Point, error) {
	table, err := readTable()
	if err != nil {
		return nil, err
	}
	from, err := originOf(dir, table)
	if err != nil {
		return nil, err
	}
	return append(table.Shows(from.mount.Device, from.root), table.Below(from.path)...), nil
}

// origin is where an open directory is: its path, the mount that it was opened through,
// and what it is called in the file system.
type origin struct {
	path  string
	mount Point
	root  string
}

func originOf(dir *os.File, table Table) (origin, error) {
	path, err := safepath.PathOf(dir)
	if err != nil {
		return origin{}, err
	}
	var stat unix.Statx_t
	if err := unix.Statx(int(dir.Fd()), "", unix.AT_EMPTY_PATH, unix.STATX_MNT_ID, &stat); err != nil {
		return origin{}, fmt.Errorf("asking for the mount of %s: %w", path, err)
	}
	home, found := table.withID(int(stat.Mnt_id))
	if !found {
		return origin{}, fmt.Errorf("looking for the mount of %s: mount %d isn't in the mount table", path, stat.Mnt_id)
	}
	below, err := filepath.Rel(home.Path, path)
	if err != nil {
		return origin{}, fmt.Errorf("looking for %s in its mount at %s: %w", path, home.Path, err)
	}
	return origin{path: path, mount: home, root: filepath.Join(home.Root, below)}, nil
}
