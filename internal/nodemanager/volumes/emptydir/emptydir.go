// Package emptydir serves emptyDir volumes: a directory that lives as long as its pod, on
// the node's disk or in its memory. Its data is removed with the pod.
//
// It has the group, the mode and the limit of the pod's spec from the beginning. In memory, the
// kernel enforces its sizeLimit and the pod's memory limit; on a disk with project quotas, its
// sizeLimit. On another disk it is measured regularly, and the pod's condition reports when it is
// over its limit. No pod is evicted for that.
package emptydir

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
	"github.com/stowage-dev/stowage/internal/ownership"
)

// Plugin is the volume type. Its zero value isn't usable: see New.
type Plugin struct {
	mounter mount.Mounter
	owner   ownership.Owner
	limits  *limits
	sizes   *sizes
}

var _ volumes.Watcher = Plugin{}

// New returns the volume type.
func New(mounter mount.Mounter) Plugin {
	return Plugin{mounter: mounter, limits: &limits{}, sizes: newSizes()}
}

// WithOwner returns a volume type that labels its volumes by this owner.
func (p Plugin) WithOwner(owner ownership.Owner) Plugin {
	p.owner = owner
	return p
}

// Name implements volumes.Plugin.
func (Plugin) Name() string { return "kubernetes.io/empty-dir" }

// CanHandle implements volumes.Plugin.
func (Plugin) CanHandle(spec volumes.Spec) bool {
	return spec.PersistentVolume == nil && spec.Volume.EmptyDir != nil
}

// Path implements volumes.Plugin.
func (Plugin) Path(dir string) string { return dir }

// IsPublished implements volumes.Plugin. An existing directory on disk is complete; one over its
// limit is an error.
func (p Plugin) IsPublished(table mount.Table, spec volumes.Spec, dir string) (bool, error) {
	if spec.Volume.EmptyDir.Medium != corev1.StorageMediumDefault {
		return table.IsMountPoint(dir), nil
	}
	info, err := os.Lstat(dir)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if !info.IsDir() {
		return false, fmt.Errorf("looking for the directory %s: a file is in its place: inspect it, and remove it by hand", dir)
	}
	return true, p.sizes.check(spec, dir)
}

// Publish implements volumes.Plugin.
func (p Plugin) Publish(ctx context.Context, spec volumes.Spec, dir string) error {
	switch medium := spec.Volume.EmptyDir.Medium; {
	case medium == corev1.StorageMediumDefault:
		return publishOnDisk(ctx, p.limits, spec, dir)
	case medium == corev1.StorageMediumMemory:
		return publishInMemory(p.mounter, spec, dir, p.owner.Label(spec.Pod, spec.Volume.Name))
	case strings.HasPrefix(string(medium), string(corev1.StorageMediumHugePages)):
		return publishInHugePages(p.mounter, spec, dir, p.owner.Label(spec.Pod, spec.Volume.Name))
	default:
		return fmt.Errorf("emptyDir with medium %s is %w: use Memory, HugePages, or none", medium, volumes.ErrNotSupported)
	}
}

// Unpublish implements volumes.Plugin. What was mounted into the volume is
// unmounted, not removed.
func (p Plugin) Unpublish(ctx context.Context, dir string) error {
	p.sizes.forget(dir)
	// First what is mounted over it: its directories have no limit of this kind.
	if err := mount.UnmountBelow(p.mounter, dir); err != nil {
		return err
	}
	// Before the directory: without it, the limit's project is unknown.
	if err := p.limits.drop(dir); err != nil {
		return err
	}
	return volumes.Remove(ctx, p.mounter, dir)
}

// Watch implements volumes.Watcher.
func (p Plugin) Watch(ctx context.Context, wake volumes.Wake) { p.sizes.watch(ctx, wake) }
