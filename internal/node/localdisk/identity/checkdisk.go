package identity

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/stowage-dev/stowage/internal/mount/safepath"
	"github.com/stowage-dev/stowage/internal/node/localdisk/layout"
)

// CheckDisk makes sure that the disk is there that a volume lies on.
func (d Disks) CheckDisk(volume layout.Volume) error {
	if volume.Disk == nil {
		return nil
	}
	folder, err := d.openAccepted(volume.Path, volume.Disk)
	if errors.Is(err, ErrSymlink) || errors.Is(err, ErrNotDirectory) {
		return fmt.Errorf("%w: %w", layout.ErrNoDisk, err)
	}
	if err != nil {
		return err
	}
	return folder.Close()
}

// isNoDirectory reports whether an error says that there is no directory of a name.
func isNoDirectory(err error) bool {
	return errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, safepath.ErrOutside)
}
