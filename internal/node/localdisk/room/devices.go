package room

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/stowage-dev/stowage/internal/device"
	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/mount/safepath"
	"github.com/stowage-dev/stowage/internal/node/localdisk/layout"
)

// devices finds the file systems of folders in the kernel's mount table. It asks no file
// system: that would wait for one that hangs. All mounts of one file system, and all parts of
// a btrfs, have the same device there.
type devices struct {
	table mount.Table
	// base is the base directory as flags have it, and resolved without symlinks.
	base, resolved string
}

// readDevices reads the mount table.
func readDevices(of layout.Base) (devices, error) {
	base, err := os.OpenFile(string(of), unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return devices{}, fmt.Errorf("opening the base directory: %w", err)
	}
	defer base.Close()
	resolved, err := os.Readlink(device.PathOf(base))
	if err != nil {
		return devices{}, fmt.Errorf("resolving the path %s: %w", of, err)
	}
	table, err := mount.Kernel{}.Table()
	return devices{table: table, base: string(of), resolved: resolved}, err
}

// at returns the major:minor of the file system that a folder below the base lies on, or would lie
// on. It is "" for one that isn't below it.
func (d devices) at(path string) string {
	relative, err := filepath.Rel(d.base, path)
	if err != nil || !filepath.IsLocal(relative) {
		return ""
	}
	path = filepath.Join(d.resolved, relative)
	at, found := d.table.At("/")
	for found {
		var below mount.Point
		if below, found = d.next(at, path); found {
			at = below
		}
	}
	return at.Device
}

// next returns the first mount below another on the way to a path.
func (d devices) next(from mount.Point, path string) (next mount.Point, found bool) {
	for _, point := range d.table {
		onWay := point.Path == path || strings.HasPrefix(path, strings.TrimSuffix(point.Path, "/")+"/")
		if point.Parent == from.ID && point.ID != from.ID && onWay && (!found || len(point.Path) < len(next.Path)) {
			next, found = point, true
		}
	}
	return next, found
}

// disk is a locked disk, and the folders of backends on it.
type disk struct {
	base    layout.Base
	devices devices
	device  string
	// shares: files can have blocks in common.
	shares bool
	// opened are the folders by their paths; nil for one on another disk, or that is missing.
	opened map[string]*os.File
}

// folder opens a backend's folder if it lies on this disk. It touches no other disk: that may
// hang.
func (d *disk) folder(path string) (*os.File, error) {
	if folder, known := d.opened[path]; known {
		return folder, nil
	}
	d.opened[path] = nil
	if d.devices.at(path) != d.device {
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
