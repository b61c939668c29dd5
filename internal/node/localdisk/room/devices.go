package room

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/mount/safepath"
	"github.com/stowage-dev/stowage/internal/node/localdisk/layout"
)

// places tells on which file systems the folders of backends lie, by the kernel's
// mount table alone: to ask a file system itself would wait for one that answers
// nobody. All mounts of one, and all parts of a btrfs, have the same device there.
type places struct {
	table mount.Table
	// base is the base directory as it is written in flags, and resolved where it is.
	base, resolved string
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

// disk is the one that a folder lies on, and what else lies on it.
type disk struct {
	base   layout.Base
	places places
	device string
	// shares: files can have blocks in common.
	shares bool
	// opened are the folders of backends on it, by their paths; nil for one that lies
	// on another disk, or isn't there.
	opened map[string]*os.File
}

// folder opens a backend's folder, if it lies on this disk: others aren't touched, one
// of them may answer nobody.
func (d *disk) folder(path string) (*os.File, error) {
	if folder, known := d.opened[path]; known {
		return folder, nil
	}
	d.opened[path] = nil
	if d.places.device(path) != d.device {
		return nil, nil //nolint:nilnil // none of this disk is an answer
	}
	folder, err := d.base.Open(path)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, safepath.ErrOutside) {
		return nil, nil //nolint:nilnil // as above
	}
	if err == nil {
		d.opened[path] = folder
	}
	return folder, err
}

func (d *disk) close() {
	for _, folder := range d.opened {
		if folder != nil {
			folder.Close()
		}
	}
}
