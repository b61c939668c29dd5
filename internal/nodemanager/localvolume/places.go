package localvolume

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/stowage-dev/stowage/internal/device"
	"github.com/stowage-dev/stowage/internal/mount"
)

// places tells on which file systems the folders of backends lie, by the kernel's
// mount table alone: to ask a file system itself would wait for one that answers
// nobody. All mounts of one, and all parts of a btrfs, have the same device there.
type places struct {
	table mount.Table
	// base is the base directory as it is written in flags, and resolved where it is.
	base, resolved string
}

// places reads the mount table.
func (s *Store) places() (places, error) {
	base, err := os.OpenFile(s.Base, unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return places{}, fmt.Errorf("opening the base directory: %w", err)
	}
	defer base.Close()
	resolved, err := os.Readlink(device.PathOf(base))
	if err != nil {
		return places{}, fmt.Errorf("asking where %s is: %w", s.Base, err)
	}
	table, err := mount.Kernel{}.Table()
	return places{table: table, base: s.Base, resolved: resolved}, err
}

// device is the major:minor of the file system that a folder below the base lies on,
// or would lie on; "" for one that isn't below it.
func (p places) device(path string) string {
	relative, err := filepath.Rel(p.base, path)
	if err != nil || !filepath.IsLocal(relative) {
		return ""
	}
	path = filepath.Join(p.resolved, relative)
	at, found := p.table.At("/")
	for found {
		var below mount.Point
		if below, found = p.next(at, path); found {
			at = below
		}
	}
	return at.Device
}

// next is the first mount that the kernel comes to on its way from one mount to a path.
func (p places) next(from mount.Point, path string) (next mount.Point, found bool) {
	for _, point := range p.table {
		onWay := point.Path == path || strings.HasPrefix(path, strings.TrimSuffix(point.Path, "/")+"/")
		if point.Parent == from.ID && point.ID != from.ID && onWay && (!found || len(point.Path) < len(next.Path)) {
			next, found = point, true
		}
	}
	return next, found
}
