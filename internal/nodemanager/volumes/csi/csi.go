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
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes/nfs"
)

// Plugin is the volume type for volumes that pods see as directories. Its zero value isn't
// usable: see New.
type Plugin struct{ sources }

var (
	_ volumes.Grower = Plugin{}
	_ volumes.Mover  = Plugin{}
	_ volumes.Queuer = Plugin{}
)

// New returns the volume type for volumes that pods see as directories.
func New(caller *Caller) Plugin { return Plugin{sources{caller: caller}} }

// CanHandle implements volumes.Plugin.
func (p Plugin) CanHandle(spec volumes.Spec) bool {
	return !spec.IsBlock() && p.caller.serves(spec.PersistentVolume)
}

// Path implements volumes.Plugin.
func (Plugin) Path(dir string) string { return filepath.Join(dir, mountDir) }

// IsPublished implements volumes.Plugin.
func (p Plugin) IsPublished(table mount.Table, spec volumes.Spec, dir string) (bool, error) {
	return p.caller.isPublished(table, spec, dirTarget(dir))
}

// EarlierName implements volumes.Mover.
func (p Plugin) EarlierName(spec volumes.Spec) string {
	if p.caller.isRemote(spec.PersistentVolume.Spec.CSI.Driver) {
		return nfs.PluginName
	}
	return ""
}

// Queue implements volumes.Queuer.
func (p Plugin) Queue(spec volumes.Spec, dir string) string {
	return p.caller.queueOf(spec, dirTarget(dir))
}

// Publish implements volumes.Plugin.
func (p Plugin) Publish(ctx context.Context, spec volumes.Spec, dir string) error {
	if err := p.removeEarlierFSGroup(dir); err != nil {
		return err
	}
	return p.caller.publish(ctx, spec, dirTarget(dir))
}

// Unpublish implements volumes.Plugin. The record goes after all that it leads to.
func (p Plugin) Unpublish(ctx context.Context, dir string) error {
	at := dirTarget(dir)
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
	if err := p.caller.unpublish(ctx, *data, at); err != nil {
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
	if err := p.caller.forget(dirTarget(dir)); err != nil {
		return err
	}
	return volumes.Unbind(p.caller.mounter, p.Path(dir), dir)
}
