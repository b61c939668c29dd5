package csi

import (
	"context"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

// pluginName is the volume type's, for directories and for devices.
const pluginName = "kubernetes.io/csi"

// sources are what volumes are made of, whether pods see them as directories or as
// devices.
type sources struct {
	caller *Caller
	disks  *Disks
}

// Name implements volumes.Plugin.
func (sources) Name() string { return pluginName }

func (s sources) has(spec volumes.Spec) bool {
	return s.caller.serves(spec.PersistentVolume) || s.disks.Serves(spec.PersistentVolume)
}

// takeFromPod takes away what a pod sees of a disk, or of what an agent of the layout before
// mounted, and what no pod sees any more, before the pod's directory goes, which is all that
// tells of the rest.
func (s sources) takeFromPod(ctx context.Context, dir string) error {
	volume := filepath.Base(dir)
	var err error
	if s.disks != nil {
		err = s.disks.unmountBelow(volume, dir)
	} else {
		err = mount.UnmountBelow(s.caller.mounter, dir)
	}
	if err != nil {
		return err
	}
	if err := s.caller.unstageEarlier(ctx, volume); err != nil {
		return err
	}
	return s.disks.unstage(ctx, volume)
}

// Grow implements volumes.Grower.
func (s sources) Grow(ctx context.Context, volume *corev1.PersistentVolume) (int64, error) {
	if s.disks.Serves(volume) {
		return s.disks.grow(ctx, volume.Name)
	}
	return s.caller.grow(ctx, volume)
}
