// Package csi has the volume type kubernetes.io/csi, by which pods have volumes of CSI drivers
// on a node without a kubelet. It calls the drivers of package drivers as a kubelet does: a
// volume is staged once for all pods of the node, published for each, and unstaged when the last
// pod is gone. It mounts nothing itself, and knows no device.
package csi

import (
	"context"
	"path/filepath"

	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/nodemanager/drivers/local"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

// Plugin is the volume type. Its zero value isn't usable: see New.
type Plugin struct{ sources }

var _ volumes.Grower = Plugin{}

// New returns the volume type, for volumes that pods see as directories.
func New(caller *Caller) Plugin { return Plugin{sources{caller: caller}} }

// CanHandle implements volumes.Plugin.
func (p Plugin) CanHandle(spec volumes.Spec) bool {
	return !spec.IsBlock() && p.caller.serves(spec.PersistentVolume)
}

// Path implements volumes.Plugin.
func (Plugin) Path(dir string) string { return filepath.Join(dir, mountDir) }

// IsPublished implements volumes.Plugin.
func (p Plugin) IsPublished(table mount.Table, spec volumes.Spec, dir string) (bool, error) {
	return p.caller.isPublished(table, spec, dirPlace(dir))
}

// Publish implements volumes.Plugin.
func (p Plugin) Publish(ctx context.Context, spec volumes.Spec, dir string) error {
	if err := p.removeGiven(dir); err != nil {
		return err
	}
	return p.caller.publish(ctx, spec, dirPlace(dir))
}

// Unpublish implements volumes.Plugin. The record goes after all that it leads to.
func (p Plugin) Unpublish(ctx context.Context, dir string) error {
	at := dirPlace(dir)
	data, err := p.caller.dataAt(at, filepath.Base(dir))
	if err != nil {
		return err
	}
	if data == nil {
		return p.unpublishEarlier(ctx, dir)
	}
	if err := p.removeGiven(dir); err != nil {
		return err
	}
	if err := p.caller.unpublish(ctx, *data, at); err != nil {
		return err
	}
	return volumes.RemoveEmptyDir(dir)
}

// removeGiven takes away what a crash of an agent of the layout before left.
func (p Plugin) removeGiven(dir string) error {
	given := filepath.Join(dir, local.EarlierGiven)
	if there, err := volumes.IsThere(given); err != nil || !there {
		return err
	}
	return volumes.Unbind(p.caller.mounter, given, given)
}

// unpublishEarlier takes away what an agent of the layout before mounted.
func (p Plugin) unpublishEarlier(ctx context.Context, dir string) error {
	if err := p.takeFromPod(ctx, dir); err != nil {
		return err
	}
	if err := volumes.RemoveEmptyDir(filepath.Join(dir, local.EarlierGiven)); err != nil {
		return err
	}
	// What a crash left of a record leads nowhere.
	if err := p.caller.forget(dirPlace(dir)); err != nil {
		return err
	}
	return volumes.Unbind(p.caller.mounter, p.Path(dir), dir)
}
