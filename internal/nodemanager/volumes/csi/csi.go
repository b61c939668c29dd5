// Package csi has the node side of CSI drivers whose volumes are directories, images and
// disks of the node, and the volume type by which pods have them on a node without a
// kubelet.
//
// A driver stages a volume once for all pods of the node, and publishes it for each (see
// package drivers). The volume type calls the local driver as a kubelet does; disks it shows
// itself, in folders of the agent's own. An image is never formatted, and a disk only if it
// is empty.
package csi

import (
	"context"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

// mountDir is the folder of a volume's directory that it is mounted on.
const mountDir = "mount"

// Plugin is the volume type. Its zero value isn't usable: see New.
type Plugin struct{ sources }

var _ volumes.Grower = Plugin{}

// New returns the volume type, for volumes that pods see as directories.
func New(caller *Caller) Plugin { return Plugin{sources{caller: caller}} }

// WithDisks returns a volume type that serves disks, too.
func (p Plugin) WithDisks(disks *Disks) Plugin {
	p.disks = disks
	return p
}

// CanHandle implements volumes.Plugin.
func (p Plugin) CanHandle(spec volumes.Spec) bool { return !spec.IsBlock() && p.has(spec) }

// Path implements volumes.Plugin.
func (Plugin) Path(dir string) string { return filepath.Join(dir, mountDir) }

func (p Plugin) place(dir string) podPlace {
	return podPlace{target: p.Path(dir), record: filepath.Join(dir, dataFile)}
}

// IsPublished implements volumes.Plugin.
func (p Plugin) IsPublished(table mount.Table, spec volumes.Spec, dir string) (bool, error) {
	if !p.disks.Serves(spec.PersistentVolume) {
		return p.caller.isPublished(table, spec, p.place(dir))
	}
	if !table.IsMountPoint(p.Path(dir)) {
		return false, nil
	}
	return p.disks.isShown(table, spec)
}

// Publish implements volumes.Plugin.
func (p Plugin) Publish(ctx context.Context, spec volumes.Spec, dir string) error {
	if !p.disks.Serves(spec.PersistentVolume) {
		if err := p.removeGiven(dir); err != nil {
			return err
		}
		return p.caller.publish(ctx, spec, p.place(dir))
	}
	// First, so that whatever a crash leaves of the rest is found by Unpublish.
	if err := os.MkdirAll(p.Path(dir), mountPointMode); err != nil {
		return err
	}
	return p.disks.publish(ctx, spec, p.Path(dir))
}

// Unpublish implements volumes.Plugin. The record goes after all that it leads to.
func (p Plugin) Unpublish(ctx context.Context, dir string) error {
	at := p.place(dir)
	data, err := p.caller.dataAt(at, filepath.Base(dir))
	if err != nil {
		return err
	}
	if data == nil {
		return p.unpublishOther(ctx, dir)
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
	given := filepath.Join(dir, earlierGiven)
	if there, err := volumes.IsThere(given); err != nil || !there {
		return err
	}
	return volumes.Unbind(p.caller.mounter, given, given)
}

// unpublishOther takes away a disk, or what an agent of the layout before mounted.
func (p Plugin) unpublishOther(ctx context.Context, dir string) error {
	if err := p.takeFromPod(ctx, dir); err != nil {
		return err
	}
	if err := volumes.RemoveEmptyDir(filepath.Join(dir, earlierGiven)); err != nil {
		return err
	}
	// What a crash left of a record leads nowhere.
	if err := p.caller.forget(p.place(dir)); err != nil {
		return err
	}
	return volumes.Unbind(p.caller.mounter, p.Path(dir), dir)
}

// CanGrow implements volumes.Grower.
func (p Plugin) CanGrow(table mount.Table, volume *corev1.PersistentVolume) bool {
	if p.disks.Serves(volume) {
		return p.disks.canGrow(table, volume.Name)
	}
	return p.caller.canGrow(table, volume)
}
