package csi

import (
	"context"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/nodemanager/drivers/mounting"
)

// sources are what volumes are made of, whether pods see them as directories or as
// devices.
type sources struct{ caller *Caller }

// Name implements volumes.Plugin.
func (sources) Name() string { return mounting.PluginName }

// takeFromPod takes away what a pod sees of what an agent of the layout before mounted, and
// what no pod sees any more, before the pod's directory goes, which is all that leads to the
// rest.
func (s sources) takeFromPod(ctx context.Context, dir string) error {
	if err := mount.UnmountBelow(s.caller.mounter, dir); err != nil {
		return err
	}
	return s.caller.unstageEarlier(ctx, filepath.Base(dir))
}

// CanGrow implements volumes.Grower.
func (s sources) CanGrow(table mount.Table, volume *corev1.PersistentVolume) bool {
	return s.caller.canGrow(table, volume)
}

// Grow implements volumes.Grower.
func (s sources) Grow(ctx context.Context, volume *corev1.PersistentVolume) (int64, error) {
	return s.caller.grow(ctx, volume)
}
