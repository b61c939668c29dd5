// Package emptydir serves emptyDir volumes: a directory that lives as long as its pod, on
// the node's disk or in its memory. Its data is removed with the pod.
//
// It is the pod's from its first moment: with the group, the mode and the limit that the
// pod asks for. In memory, the kernel keeps it within its sizeLimit and the memory that
// the pod may have; on a disk with project quotas, within its sizeLimit. On another disk
// it is measured now and then, and the pod's condition tells when it has too much. Nobody
// is evicted for that.
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

// WithOwner returns a volume type whose volumes are given to pods by this owner.
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

// IsPublished implements volumes.Plugin. A volume on disk that is there is finished; that
// it takes up too much is an error.
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
		return false, fmt.Errorf("looking for the directory %s: a file is in its place: look at it, and remove it by hand", dir)
	}
	return true, p.sizes.check(spec, dir)
}

// Publish implements volumes.Plugin.
func (p Plugin) Publish(ctx context.Context, spec volumes.Spec, dir string) error {
	switch medium := spec.Volume.EmptyDir.Medium; {
	case medium == corev1.StorageMediumDefault:
		return p.publishOnDisk(ctx, spec, dir)
	case medium == corev1.StorageMediumMemory:
		return p.publishInMemory(spec, dir)
	case strings.HasPrefix(string(medium), string(corev1.StorageMediumHugePages)):
		return p.publishInHugePages(spec, dir)
	default:
		return fmt.Errorf("emptyDir with medium %s is %w: use Memory, HugePages, or none", medium, volumes.ErrNotSupported)
	}
}

// Unpublish implements volumes.Plugin. What was mounted into the volume is
// unmounted, not removed.
func (p Plugin) Unpublish(ctx context.Context, dir string) error {
	p.sizes.forget(dir)
	// First what is mounted over it, in which nothing has a limit of this kind.
	if err := mount.UnmountBelow(p.mounter, dir); err != nil {
		return err
	}
	// After the directory, nothing would tell whose limit it was.
	if err := p.limits.drop(dir); err != nil {
		return err
	}
	return volumes.Remove(ctx, p.mounter, dir)
}

// Watch implements volumes.Watcher.
func (p Plugin) Watch(ctx context.Context, tell volumes.Tell) { p.sizes.watch(ctx, tell) }
