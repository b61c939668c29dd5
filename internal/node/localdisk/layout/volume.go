// Package layout defines what a volume of the local backend is on a disk. That is its directory or
// image, its name, and the owner record with its claim. All paths are opened below one base
// directory, and through no symlink. The package also has the kinds of errors that the agents of
// local disks share. It writes nothing but the owner record.
package layout

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
)

// Volume is what packages below the agents know of a NodeVolume.
type Volume struct {
	// Path is the folder of its backend; Name is its directory in it.
	Path, Name string
	// Owner is the claim of the volume.
	Owner stowagev1alpha1.ClaimReference
	// Bytes is the requested capacity. Has is the capacity it has, 0 where that isn't known.
	// Reserved is what must stay free on its disk.
	Bytes, Has, Reserved int64
	// Used is how much of a directory was used at the last count, 0 where there was none.
	Used int64
	// Provisioned: it was made, and nothing of it was removed. Removing: it was made, and is
	// being removed. Copy: it began as a copy of another.
	Provisioned, Removing, Copy bool
	// Image is nil for a plain directory.
	Image *Image
	// Source is the volume that it begins as a copy of, of the same layout. Nil: it begins empty.
	Source *Volume
	// Disk is its disk: nothing of the volume is made or removed on another. Nil: any disk.
	Disk *stowagev1alpha1.DiskIdentity
}

// Directory is the path of the volume.
func (v Volume) Directory() string { return filepath.Join(v.Path, v.Name) }

// ImagePath is the path of its image, if it has one.
func (v Volume) ImagePath() string { return filepath.Join(v.Directory(), stowagev1alpha1.ImageFile) }

// IsFiles reports whether a volume is a file system, which has inodes, and no block device.
func (v Volume) IsFiles() bool { return v.Image == nil || v.Image.FSType != "" }

// StatIn stats a volume's directory, or its image, in its open folder: nil if it is missing. It
// opens nothing: each volume that is made stats all images, and the directories that aren't made yet.
func (v Volume) StatIn(folder *os.File) (*unix.Stat_t, error) {
	name := v.Name
	if v.Image != nil {
		name += "/" + stowagev1alpha1.ImageFile
	}
	var stat unix.Stat_t
	err := unix.Fstatat(int(folder.Fd()), name, &stat, unix.AT_SYMLINK_NOFOLLOW)
	switch {
	case errors.Is(err, unix.ENOENT):
		return nil, nil //nolint:nilnil // absence is an answer
	case err != nil:
		return nil, fmt.Errorf("looking for volume %s: %w", v.Name, err)
	default:
		return &stat, nil
	}
}

// Image describes the image of a volume: a file in the volume's directory.
type Image struct {
	// FSType is the type of the file system in it; "" for a block device.
	FSType string
	// Sparse: the file has no blocks for what isn't written.
	Sparse bool
}

// Lister lists the node's other volumes. It is called under the lock of the disk: so the list has
// each volume with allocated room.
type Lister func() ([]Volume, error)

// FolderMode is the mode of the folder of a backend: only root can enter it.
const FolderMode = 0o700

// VolumeMode is the mode of a volume: pods run as any user, and reach it only through a mount.
const VolumeMode = 0o777
