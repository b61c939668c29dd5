// Package local serves static volumes of source `local`: a directory of one node that an
// administrator prepared. It is never made and never removed. The dynamic volumes of Stowage's
// local backend are of source csi.
//
// The fsGroup of the first pod is applied to it. Further pods use it as it is, with an event if
// their fsGroup differs.
package local

import (
	"context"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/stowage-dev/stowage/internal/keyed"
	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
	"github.com/stowage-dev/stowage/internal/ownership"
)

// Plugin is the volume type. Its zero value isn't usable: see New.
type Plugin struct {
	mounter mount.Mounter
	owner   ownership.Owner
	// directories has a lock for each directory that a pod begins to use.
	directories *keyed.Locks
}

var _ volumes.Plugin = Plugin{}

// New returns the volume type.
func New(mounter mount.Mounter) Plugin {
	return Plugin{mounter: mounter, directories: &keyed.Locks{}}
}

// WithOwner returns a volume type that applies fsGroup by this owner.
func (p Plugin) WithOwner(owner ownership.Owner) Plugin {
	p.owner = owner
	return p
}

// Name implements volumes.Plugin.
func (Plugin) Name() string { return "kubernetes.io/local-volume" }

// CanHandle implements volumes.Plugin.
func (Plugin) CanHandle(spec volumes.Spec) bool {
	return spec.PersistentVolume != nil && spec.PersistentVolume.Spec.Local != nil
}

// Path implements volumes.Plugin.
func (Plugin) Path(dir string) string { return dir }

// IsPublished implements volumes.Plugin.
func (Plugin) IsPublished(table mount.Table, _ volumes.Spec, dir string) (bool, error) {
	return table.IsMountPoint(dir), nil
}

// Publish implements volumes.Plugin.
func (p Plugin) Publish(ctx context.Context, spec volumes.Spec, dir string) error {
	source, err := os.OpenFile(spec.PersistentVolume.Spec.Local.Path, unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return fmt.Errorf("opening the local volume, which must be a directory: %w", err)
	}
	defer source.Close()
	if _, wanted := ownership.GroupOf(spec.Pod, spec.Access); wanted {
		release, err := p.acquire(ctx, spec.PersistentVolume.Spec.Local.Path)
		if err != nil {
			return err
		}
		defer release()
		if err := p.applyFSGroup(ctx, spec, source, dir); err != nil {
			return err
		}
	}
	return volumes.Bind(p.mounter, source, dir, spec.Access)
}

// Unpublish implements volumes.Plugin.
func (p Plugin) Unpublish(_ context.Context, dir string) error {
	return volumes.Unbind(p.mounter, dir, dir)
}
