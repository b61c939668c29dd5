package subpath

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/stowage-dev/stowage/internal/mount"
)

// State is what is mounted at the target of a part.
type State int

const (
	// Missing means: nothing is mounted there.
	Missing State = iota
	// Stale means: the mounted part was removed from the volume, or the volume was mounted again.
	Stale
	// Mounted means: a part of the volume is mounted there.
	Mounted
)

// Inspect returns the state of the target of a part. The volume is mounted at the path volume.
// It reads the mount table only: if the server of the volume hangs, it doesn't.
func Inspect(table mount.Table, volume, target string) State {
	part, mounted := table.At(target)
	if !mounted {
		return Missing
	}
	if part.RootDeleted || !isOf(table, volume, part) {
		return Stale
	}
	return Mounted
}

// isOf reports whether a mounted part lies in a volume, or in a mount inside the volume.
func isOf(table mount.Table, volume string, part mount.Point) bool {
	if device, root, found := locate(table, volume); found && part.Device == device && isWithin(part.Root, root) {
		return true
	}
	return slices.ContainsFunc(table.Below(volume), func(inside mount.Point) bool {
		return inside.Path != volume && part.Device == inside.Device && isWithin(part.Root, inside.Root)
	})
}

// locate finds the file system of a path, and the path's root in it.
func locate(table mount.Table, path string) (device, root string, found bool) {
	for at := path; ; at = filepath.Dir(at) {
		if point, mounted := table.At(at); mounted {
			return point.Device, filepath.Join(point.Root, strings.TrimPrefix(path, at)), true
		}
		if at == filepath.Dir(at) {
			return "", "", false
		}
	}
}

// isWithin reports whether path is dir or lies below it.
func isWithin(path, dir string) bool {
	relative, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(relative)
}
