package subpath

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/stowage-dev/stowage/internal/mount"
)

// State is what there is at the target of a part.
type State int

const (
	// Missing says that nothing is mounted there.
	Missing State = iota
	// Stale says that what is mounted there isn't, or isn't any more, in the volume: it
	// was removed from it, or the volume was mounted anew since.
	Stale
	// Shown says that a part of the volume is mounted there.
	Shown
)

// Look says what there is at a target of a volume, which is visible at the path volume.
// It looks at the mount table only: a volume whose server hangs doesn't make it hang.
func Look(table mount.Table, volume, target string) State {
	part, mounted := table.At(target)
	if !mounted {
		return Missing
	}
	if part.RootDeleted || !isOf(table, volume, part) {
		return Stale
	}
	return Shown
}

// isOf says whether what is mounted somewhere lies in a volume, or in what is mounted in
// the volume.
func isOf(table mount.Table, volume string, part mount.Point) bool {
	if device, root, found := lies(table, volume); found && part.Device == device && isWithin(part.Root, root) {
		return true
	}
	return slices.ContainsFunc(table.Below(volume), func(inside mount.Point) bool {
		return inside.Path != volume && part.Device == inside.Device && isWithin(part.Root, inside.Root)
	})
}

// lies finds the file system that a path is on, and where in it the path leads.
func lies(table mount.Table, path string) (device, root string, found bool) {
	for at := path; ; at = filepath.Dir(at) {
		if point, mounted := table.At(at); mounted {
			return point.Device, filepath.Join(point.Root, strings.TrimPrefix(path, at)), true
		}
		if at == filepath.Dir(at) {
			return "", "", false
		}
	}
}

// isWithin says whether path is dir or lies below it.
func isWithin(path, dir string) bool {
	relative, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(relative)
}
