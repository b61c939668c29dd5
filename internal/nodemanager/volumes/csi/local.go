package csi

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

// LocalDriver is the node side of the local backend.
type LocalDriver struct {
	// Base is the directory of this node that all local volumes lie below.
	Base string
}

var _ Driver = LocalDriver{}

// Open implements Driver. Volume objects can be written by others than Stowage:
// a path that isn't the volume's own directory below the base is refused.
func (d LocalDriver) Open(_ context.Context, volume *corev1.PersistentVolume) (*os.File, error) {
	source := volume.Spec.CSI
	attributes := source.VolumeAttributes
	if layout := attributes[stowagev1alpha1.LayoutAttribute]; layout != string(stowagev1alpha1.LayoutDirectory) {
		return nil, fmt.Errorf("a local volume of layout %q is %w", layout, volumes.ErrNotSupported)
	}
	path := attributes[stowagev1alpha1.PathAttribute]
	if filepath.Base(path) != source.VolumeHandle || path != filepath.Clean(path) {
		return nil, fmt.Errorf("the volume's path %q isn't the directory of volume %q", path, source.VolumeHandle)
	}
	dir, err := mount.OpenBeneath(d.Base, path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, fmt.Errorf("the volume isn't on this node's disk (is the disk mounted?): %w", err)
	case errors.Is(err, mount.ErrOutside):
		return nil, fmt.Errorf("the volume isn't below this node's --local-base: %w", err)
	}
	return dir, err
}
