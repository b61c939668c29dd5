package csi

import (
	"context"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/nodemanager/drivers/mounting"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes/csi/foreign"
)

// sources implements what the volume types for directories and for devices share.
type sources struct{ caller *Caller }

// Name implements volumes.Plugin.
func (sources) Name() string { return mounting.PluginName }

// takeFromPod unmounts from a pod what an agent of the previous layout mounted, and then from the
// node if no pod has it. It must precede the removal of the pod's directory, which alone leads to
// the rest.
func (s sources) takeFromPod(ctx context.Context, dir string) error {
	if err := mount.UnmountBelow(s.caller.mounter, dir); err != nil {
		return err
	}
	return s.caller.unstageEarlier(ctx, filepath.Base(dir))
}

// CanGrow implements volumes.Grower.
func (s sources) CanGrow(table mount.Table, volume *corev1.PersistentVolume) bool {
	if foreign.Is(volume.Spec.CSI.Driver) {
		return s.caller.foreign.CanGrow(table, volume)
	}
	return s.caller.canGrow(table, volume)
}

// Grow implements volumes.Grower.
func (s sources) Grow(ctx context.Context, volume *corev1.PersistentVolume) (int64, error) {
	if foreign.Is(volume.Spec.CSI.Driver) {
		return s.caller.foreign.Expand(ctx, volume)
	}
	return s.caller.grow(ctx, volume)
}

// Measures implements volumes.Measurer. Of the agent's own drivers, a volume has what its file system
// says.
func (sources) Measures(spec volumes.Spec) bool { return foreign.Is(foreign.DriverOf(spec)) }
