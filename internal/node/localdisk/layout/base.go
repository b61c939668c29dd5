package layout

import (
	"errors"
	"fmt"
	"os"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/device"
	"github.com/stowage-dev/stowage/internal/mount/safepath"
)

// Base is the directory of a node's local volumes. It must exist: a missing one may be a disk that
// isn't mounted.
type Base string

// Open opens a folder below the base without following symlinks. A path that isn't below
// it is safepath.ErrOutside.
func (b Base) Open(path string) (*os.File, error) { return safepath.OpenBeneath(string(b), path) }

// Exists reports whether a volume's directory exists, and in it the image, if it has one.
func (b Base) Exists(volume Volume) (bool, error) {
	dir, err := b.Open(volume.Directory())
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer dir.Close()
	if volume.Image == nil {
		return true, nil
	}
	image, err := safepath.OpenFileAt(dir, stowagev1alpha1.ImageFile)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, image.Close()
}

// OpenImage opens the image of a volume that was made.
func (b Base) OpenImage(volume Volume) (*os.File, error) {
	dir, err := b.Open(volume.Directory())
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	path, err := safepath.OpenFileAt(dir, stowagev1alpha1.ImageFile)
	if err != nil {
		return nil, err
	}
	defer path.Close()
	image, err := os.OpenFile(device.PathOf(path), os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("opening image %s: %w", volume.ImagePath(), err)
	}
	return image, nil
}
