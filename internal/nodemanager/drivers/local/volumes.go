package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/mount/safepath"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

// snapshotPrefix begins the names of snapshots, which lie beside the volumes.
const snapshotPrefix = "snapshot-"

// Volumes finds the volumes of the local driver on this node.
type Volumes struct {
	// Base is the directory of this node that contains all local volumes.
	Base string
	// IsCopied reports whether the volume in a directory is being copied to another one. Nil:
	// none ever is.
	IsCopied func(directory string) bool
	// CheckDisk returns an error unless the volume in a directory was made on the disk that is
	// there now. Nil: any disk will do.
	CheckDisk func(ctx context.Context, directory string) error
}

// Guards returns why no pod may have a volume now. Call it after a directory is staged: a copy
// announces itself before it checks where the directory is mounted. What is copied must not
// change: an image is locked, and a directory can't be.
func (d Volumes) Guards(volume *corev1.PersistentVolume) error {
	if d.IsCopied != nil && d.IsCopied(volume.Spec.CSI.VolumeAttributes[stowagev1alpha1.PathAttribute]) {
		return errors.New("the volume is being copied to another one, and can be used when that is done")
	}
	return nil
}

// Open opens the top directory of a volume or, if it is one, its image. The caller closes it.
// Others than Stowage can write volume objects: Open refuses a path that isn't the volume's own
// directory below the base.
func (d Volumes) Open(ctx context.Context, volume *corev1.PersistentVolume) (*os.File, error) {
	source := volume.Spec.CSI
	attributes := source.VolumeAttributes
	path := attributes[stowagev1alpha1.PathAttribute]
	if filepath.Base(path) != source.VolumeHandle || path != filepath.Clean(path) || path == filepath.Clean(d.Base) {
		return nil, fmt.Errorf("the volume's path %q isn't the directory of volume %q", path, source.VolumeHandle)
	}
	if strings.HasPrefix(source.VolumeHandle, snapshotPrefix) {
		return nil, fmt.Errorf("volume %s is a snapshot, which no pod may change: restore it to a claim: %w", source.VolumeHandle, volumes.ErrNotSupported)
	}
	if d.CheckDisk != nil {
		if err := d.CheckDisk(ctx, path); err != nil {
			return nil, fmt.Errorf("the volume isn't on this node's disk: %w", err)
		}
	}
	switch layout := stowagev1alpha1.LocalLayout(attributes[stowagev1alpha1.LayoutAttribute]); layout {
	case stowagev1alpha1.LayoutDirectory:
		return d.openDirectory(path)
	case stowagev1alpha1.LayoutImage:
		return d.openImage(path)
	default:
		return nil, fmt.Errorf("a local volume of layout %q is %w", layout, volumes.ErrNotSupported)
	}
}

func (d Volumes) openDirectory(path string) (*os.File, error) {
	dir, err := safepath.OpenBeneath(d.Base, path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, fmt.Errorf("the volume isn't on this node's disk (is the disk mounted?): %w", err)
	case errors.Is(err, safepath.ErrOutside):
		return nil, fmt.Errorf("the volume isn't below this node's --local-base: %w", err)
	}
	return dir, err
}

// openImage opens the image in a volume's directory.
func (d Volumes) openImage(path string) (*os.File, error) {
	dir, err := d.openDirectory(path)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	image, err := safepath.OpenFileAt(dir, stowagev1alpha1.ImageFile)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("the volume's image isn't on this node's disk: %w", err)
	}
	return image, err
}
