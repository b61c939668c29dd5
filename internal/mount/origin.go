package mount

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Visible is where the open directory, or a part of it, is mounted elsewhere,
// and what is mounted below it: an empty list says that nobody reaches its files
// through a mount of its own.
func Visible(dir *os.File) ([]Point, error) {
	path, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", dir.Fd()))
	if err != nil {
		return nil, fmt.Errorf("asking where %s is: %w", dir.Name(), err)
	}
	var stat unix.Statx_t
	if err := unix.Statx(int(dir.Fd()), "", unix.AT_EMPTY_PATH, unix.STATX_MNT_ID, &stat); err != nil {
		return nil, fmt.Errorf("asking for the mount of %s: %w", path, err)
	}
	table, err := readTable()
	if err != nil {
		return nil, err
	}
	home, found := table.withID(int(stat.Mnt_id))
	if !found {
		return nil, fmt.Errorf("looking for the mount of %s: mount %d isn't in the mount table", path, stat.Mnt_id)
	}
	below, err := filepath.Rel(home.Path, path)
	if err != nil {
		return nil, fmt.Errorf("looking for %s in its mount at %s: %w", path, home.Path, err)
	}
	return append(table.Shows(home.Device, filepath.Join(home.Root, below)), table.Below(path)...), nil
}
