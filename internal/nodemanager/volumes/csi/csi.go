// Package csi implements the volume type kubernetes.io/csi, by which pods have volumes of CSI
// drivers on a node without a kubelet. It calls the drivers of package drivers as a kubelet does.
// It has a volume staged once for all pods of the node, published for each, and unstaged when the
// last pod is gone. It mounts nothing itself, and knows no device.
package csi

import (
	"context"
	"path/filepath"

	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/nodemanager/drivers/local"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes/csi/foreign"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes/csi/record"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes/nfs"
)

// Plugin is the volume type for volumes that pods see as directories. Its zero value isn't
// usable: see New.
type Plugin struct{ sources }

var (
	_ volumes.Dependent   = Plugin{}
	_ volumes.Grower      = Plugin{}
	_ volumes.Measurer    = Plugin{}
	_ volumes.Mover       = Plugin{}
	_ volumes.Queuer      = Plugin{}
	_ volumes.Republisher = Plugin{}
)

// New returns the volume type for volumes that pods see as directories.
func New(caller *Caller) Plugin { return Plugin{sources{caller: caller}} }

// CanHandle implements volumes.Plugin.
func (p Plugin) CanHandle(spec volumes.Spec) bool {
	return !spec.IsBlock() && p.caller.serves(spec)
}

// Path implements volumes.Plugin.
func (Plugin) Path(dir string) string { return filepath.Join(dir, record.MountDir) }

// IsPublished implements volumes.Plugin.
func (p Plugin) IsPublished(table mount.Table, spec volumes.Spec, dir string) (bool, error) {
	if foreign.Is(foreign.DriverOf(spec)) {
		return p.caller.foreign.IsPublished(table, spec, record.Dir(dir))
	}
	return p.caller.isPublished(table, spec, record.Dir(dir))
}

// EarlierName implements volumes.Mover.
func (p Plugin) EarlierName(spec volumes.Spec) string {
	if p.caller.isRemote(foreign.DriverOf(spec)) {
		return nfs.PluginName
	}
	return ""
}

// Queue implements volumes.Queuer.
func (p Plugin) Queue(spec volumes.Spec, dir string) string {
	return p.caller.queueOf(spec, record.Dir(dir))
}

// Missing implements volumes.Dependent.
func (p Plugin) Missing(spec volumes.Spec, dir string) error {
	return p.caller.foreign.Missing(spec, record.Dir(dir))
}

// Republishes implements volumes.Republisher, by the CSIDriver of the volume.
func (p Plugin) Republishes(ctx context.Context, spec volumes.Spec) bool {
	return p.caller.foreign.Republishes(ctx, foreign.DriverOf(spec))
}

// Republish implements volumes.Republisher.
func (p Plugin) Republish(ctx context.Context, spec volumes.Spec, dir string) error {
	return p.caller.foreign.Republish(ctx, spec, record.Dir(dir))
}

// Measure implements volumes.Measurer.
func (p Plugin) Measure(ctx context.Context, spec volumes.Spec, dir string) (volumes.Usage, error) {
	return p.caller.foreign.Usage(ctx, spec, record.Dir(dir))
}

// Publish implements volumes.Plugin.
func (p Plugin) Publish(ctx context.Context, spec volumes.Spec, dir string) error {
	if foreign.Is(foreign.DriverOf(spec)) {
		return p.caller.foreign.Publish(ctx, spec, record.Dir(dir))
	}
	if err := p.removeEarlierFSGroup(dir); err != nil {
		return err
	}
	return p.caller.publish(ctx, spec, record.Dir(dir))
}

// Unpublish implements volumes.Plugin. The record goes after all that it leads to.
func (p Plugin) Unpublish(ctx context.Context, dir string) error {
	at := record.Dir(dir)
	data, err := p.caller.dataAt(at, filepath.Base(dir))
	if err != nil {
		return err
	}
	if data == nil {
		return p.unpublishEarlier(ctx, dir)
	}
	if err := p.removeEarlierFSGroup(dir); err != nil {
		return err
	}
	if foreign.Is(data.Driver) {
		err = p.caller.foreign.Unpublish(ctx, *data, at)
	} else {
		err = p.caller.unpublish(ctx, *data, at)
	}
	if err != nil {
		return err
	}
	return volumes.RemoveEmptyDir(dir)
}

// removeEarlierFSGroup removes the mount that a crash of an agent of the previous layout left,
// which was applying an fsGroup.
func (p Plugin) removeEarlierFSGroup(dir string) error {
	earlier := filepath.Join(dir, local.EarlierFSGroup)
	if there, err := volumes.IsThere(earlier); err != nil || !there {
		return err
	}
	return volumes.Unbind(p.caller.mounter, earlier, earlier)
}

// unpublishEarlier unmounts what an agent of the previous layout mounted.
func (p Plugin) unpublishEarlier(ctx context.Context, dir string) error {
	if err := p.caller.unbindRemote(ctx, p.Path(dir)); err != nil {
		return err
	}
	if err := p.takeFromPod(ctx, dir); err != nil {
		return err
	}
	if err := volumes.RemoveEmptyDir(filepath.Join(dir, local.EarlierFSGroup)); err != nil {
		return err
	}
	// An unfinished record that a crash left leads nowhere.
	if err := record.Dir(dir).Forget(); err != nil {
		return err
	}
	return volumes.Unbind(p.caller.mounter, p.Path(dir), dir)
}
