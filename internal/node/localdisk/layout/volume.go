// Package layout knows what a volume of the local backend is on a disk: its directory or
// image, its name, and the record that says which claim owns it. All paths are opened below
// one base directory, and through no symlink. The package also has the kinds of errors that
// the agents of local disks share. It makes and removes nothing but the owner record.
package layout

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
)

// Volume is a volume as a Store sees it.
type Volume struct {
	// Path is the folder of its backend; Name is its directory in it.
	Path, Name string
	// Owner is the claim that it was made for.
	Owner stowagev1alpha1.ClaimReference
	// Bytes is the capacity that it is asked to have, Has what it was given, 0 where
	// nobody knows, and Reserved what must stay free on its disk.
	Bytes, Has, Reserved int64
	// Used is how much of a directory was used when that was counted last, 0 where nobody
	// knows.
	Used int64
	// Provisioned: it was made before, and nothing of it was removed. Removing: it was made
	// before, and is being removed. Copy: it began as a copy of another.
	Provisioned, Removing, Copy bool
	// Image is set for one that is an image, and not a plain directory.
	Image *Image
	// Source is what it begins as a copy of, a volume of its kind; nil: it is to be empty.
	Source *Volume
	// Disk is the one that it lies on, or is to: nothing of the volume is made or
	// removed on another. Nil: whichever is there.
	Disk *stowagev1alpha1.DiskIdentity
}

// Directory is where the volume lies.
func (v Volume) Directory() string { return filepath.Join(v.Path, v.Name) }

// ImagePath is where its image lies, if it is one.
func (v Volume) ImagePath() string { return filepath.Join(v.Directory(), stowagev1alpha1.ImageFile) }

// IsFiles says whether a volume is files, of which there is a number, and no device.
func (v Volume) IsFiles() bool { return v.Image == nil || v.Image.FSType != "" }

// StatIn asks for a volume's directory, or its image, in its open folder: nil if it
// isn't there. It opens nothing: each volume that is made asks for all others.
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

// Image is what a volume is that is an image: a file in the volume's directory.
type Image struct {
	// FSType is the file system in it; "" where pods get it as a block device.
	FSType string
	// Sparse: the disk keeps no room for what isn't written.
	Sparse bool
}

// Lister lists the node's other volumes. The store calls it while it is the disk's
// turn, so that it tells of every volume that was given room of it before.
type Lister func() ([]Volume, error)

// FolderMode is the mode of the folder of a backend: closed to all but root.
const FolderMode = 0o700

// VolumeMode is the mode of a volume: pods run as any user, and reach it by a mount alone.
const VolumeMode = 0o777
