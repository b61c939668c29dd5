package identity

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/stowage-dev/stowage/internal/mount/safepath"
	"github.com/stowage-dev/stowage/internal/node/localdisk/layout"
)

// checkDiskIsThere refuses a folder in which those volumes that were made before are
// all missing: that is a disk which isn't mounted, and what is written there would
// land on the disk below. A volume that is being removed is a sign of that, too: taken
// for removed, it would be forgotten with its data.
func (d Disks) checkDiskIsThere(path string, others []layout.Volume) error {
	missing := ""
	for _, other := range others {
		if other.Path != path || !other.Provisioned && !other.Removing {
			continue
		}
		exists, err := d.Base.Exists(other)
		if err != nil || exists {
			return err
		}
		missing = other.Name
	}
	if missing != "" {
		return fmt.Errorf("%w: volume %s was made in %s and isn't there: mount the disk", layout.ErrNoDisk, missing, path)
	}
	return nil
}

// FolderOf opens the folder of a volume's backend, on the volume's disk. Where that
// isn't known the folder is made.
func (d Disks) FolderOf(volume layout.Volume) (*os.File, error) {
	if volume.Disk != nil {
		return d.openAccepted(volume.Path, volume.Disk)
	}
	return d.ensureFolder(volume.Path)
}

// ensureFolder makes the folder of a backend below the base, and opens it. Its
// name survives a loss of power, as that of the volume in it will.
func (d Disks) ensureFolder(path string) (*os.File, error) {
	folder, err := d.Base.Open(string(d.Base))
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s, the base of this node's volumes, is missing: create it, or mount the disk", layout.ErrNoDisk, d.Base)
	}
	if err != nil {
		return nil, err
	}
	relative, err := filepath.Rel(string(d.Base), path)
	if err != nil || !filepath.IsLocal(relative) {
		folder.Close()
		return nil, safepath.ErrOutside
	}
	if relative == "." {
		return folder, nil
	}
	for _, part := range strings.Split(relative, string(filepath.Separator)) {
		next, err := ensureSubfolder(folder, part)
		folder.Close()
		if err != nil {
			return nil, err
		}
		folder = next
	}
	return folder, nil
}

func ensureSubfolder(folder *os.File, name string) (*os.File, error) {
	if err := safepath.EnsureDir(folder, name, layout.FolderMode); err != nil {
		return nil, err
	}
	if err := safepath.SyncDir(folder); err != nil {
		return nil, err
	}
	return safepath.OpenAt(folder, name)
}
