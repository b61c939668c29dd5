// Package inspect looks at a volume that was made: how much of it is used, whether its disk
// or file system fails, and whether either is nearly full. It only reads. A disk that can't
// be read is a problem of the volume; a look that fails for another reason says nothing.
package inspect

import (
	"fmt"

	"golang.org/x/sys/unix"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/node/localdisk/layout"
)

// Volume looks at a volume that is there. Had is the reason of its last trouble.
func Volume(base layout.Base, volume layout.Volume, at *Snapshot, had string) (seen Report, err error) {
	dir, err := base.Open(volume.Directory())
	if err != nil {
		return seen, err
	}
	defer dir.Close()
	if err := checkDisk(base, &seen, volume, had); err != nil {
		return seen, err
	}
	if volume.Image == nil {
		err = seen.checkDirectory(dir, volume)
		return seen, err
	}
	seen.Enforced = true
	err = seen.checkImage(dir, volume, at)
	return seen, err
}

// checkDisk looks at the file system that a volume's folder lies on. That of its own
// directory tells of the quota, where it has one.
func checkDisk(base layout.Base, seen *Report, volume layout.Volume, had string) error {
	folder, err := base.Open(volume.Path)
	if err != nil {
		return err
	}
	defer folder.Close()
	var stat unix.Statfs_t
	if err := unix.Fstatfs(int(folder.Fd()), &stat); err != nil {
		return fmt.Errorf("asking for the size of the disk at %s: %w", volume.Path, err)
	}
	if stat.Flags&unix.ST_RDONLY != 0 {
		seen.add(stowagev1alpha1.ReasonFileSystemReadOnly, "the disk at %s can't be written: look at the node's kernel log", volume.Path)
	}
	size, free := int64(stat.Blocks)*stat.Frsize, int64(stat.Bavail)*stat.Frsize
	seen.checkInodes(stat, volume, had)
	needsRoom := volume.Image == nil || volume.Image.Sparse
	if needsRoom && isNearlyFull(size-free, size, had == stowagev1alpha1.ReasonDiskNearlyFull) {
		seen.add(stowagev1alpha1.ReasonDiskNearlyFull, "the disk at %s is nearly full, and the volume gets what it needs from there: remove files, or volumes", volume.Path)
	}
	return nil
}
