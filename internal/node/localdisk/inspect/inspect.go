// Package inspect reads the state of a volume that was made. That is its usage, whether its disk or
// file system fails, and whether either is nearly full. It only reads. A disk that can't be read is
// a problem of the volume. An inspection that fails for another reason reports nothing.
package inspect

import (
	"fmt"

	"golang.org/x/sys/unix"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/node/localdisk/layout"
)

// Volume inspects a volume that exists. Had is the reason of its condition Healthy so far.
func Volume(base layout.Base, volume layout.Volume, at *Snapshot, had string) (found Report, err error) {
	dir, err := base.Open(volume.Directory())
	if err != nil {
		return found, err
	}
	defer dir.Close()
	if err := checkDisk(base, &found, volume, had); err != nil {
		return found, err
	}
	if volume.Image == nil {
		err = found.checkDirectory(dir, volume)
		return found, err
	}
	found.Enforced = true
	err = found.checkImage(dir, volume, at)
	return found, err
}

// checkDisk inspects the file system of a volume's folder. The volume's own directory would show
// its quota instead of the disk.
func checkDisk(base layout.Base, found *Report, volume layout.Volume, had string) error {
	folder, err := base.Open(volume.Path)
	if err != nil {
		return err
	}
	defer folder.Close()
	var stat unix.Statfs_t
	if err := unix.Fstatfs(int(folder.Fd()), &stat); err != nil {
		return fmt.Errorf("reading the size of the disk at %s: %w", volume.Path, err)
	}
	if stat.Flags&unix.ST_RDONLY != 0 {
		found.add(stowagev1alpha1.ReasonFileSystemReadOnly, "the disk at %s can't be written: look at the node's kernel log", volume.Path)
	}
	size, free := int64(stat.Blocks)*stat.Frsize, int64(stat.Bavail)*stat.Frsize
	found.checkInodes(stat, volume, had)
	needsRoom := volume.Image == nil || volume.Image.Sparse
	if needsRoom && isNearlyFull(size-free, size, had == stowagev1alpha1.ReasonDiskNearlyFull) {
		found.add(stowagev1alpha1.ReasonDiskNearlyFull, "the disk at %s is nearly full, and the volume gets what it needs from there: remove files, or volumes", volume.Path)
	}
	return nil
}
