// Package emptydir serves emptyDir volumes: a directory that lives as long as
// its pod, on the node's disk or in memory. Its data is removed with the pod.
package emptydir

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

// mode lets every user that a pod's containers run as write.
const mode = 0o777

// Plugin is the volume type. Its zero value isn't usable: see New.
type Plugin struct {
	mounter mount.Mounter
}

var _ volumes.Plugin = Plugin{}

// New returns the volume type.
func New(mounter mount.Mounter) Plugin {
	return Plugin{mounter: mounter}
}

// Name implements volumes.Plugin.
func (Plugin) Name() string { return "kubernetes.io/empty-dir" }

// CanHandle implements volumes.Plugin.
func (Plugin) CanHandle(spec volumes.Spec) bool {
	return spec.PersistentVolume == nil && spec.Volume.EmptyDir != nil
}

// Path implements volumes.Plugin.
func (Plugin) Path(dir string) string { return dir }

// IsPublished implements volumes.Plugin.
func (Plugin) IsPublished(table mount.Table, spec volumes.Spec, dir string) (bool, error) {
	if spec.Volume.EmptyDir.Medium == corev1.StorageMediumMemory {
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
		return false, fmt.Errorf("looking for the directory %s: a file is in its place", dir)
	}
	return true, nil
}

// Publish implements volumes.Plugin. sizeLimit is the size of a volume in
// memory; on disk it isn't enforced.
func (p Plugin) Publish(_ context.Context, spec volumes.Spec, dir string) error {
	source := spec.Volume.EmptyDir
	if source.Medium != corev1.StorageMediumDefault && source.Medium != corev1.StorageMediumMemory {
		return fmt.Errorf("emptyDir with medium %s is %w: use Memory or none", source.Medium, volumes.ErrNotSupported)
	}
	parent, err := os.Open(filepath.Dir(dir))
	if err != nil {
		return err
	}
	defer parent.Close()
	if err := mount.EnsureDir(parent, filepath.Base(dir), mode); err != nil {
		return err
	}
	if source.Medium == corev1.StorageMediumDefault {
		return nil
	}
	table, err := p.mounter.Table()
	if err != nil || table.IsMountPoint(dir) {
		return err
	}
	options := mount.TmpfsOptions{Mode: mode}
	if source.SizeLimit != nil {
		options.Bytes = source.SizeLimit.Value()
	}
	return p.mounter.Tmpfs(dir, options)
}

// Unpublish implements volumes.Plugin. What was mounted into the volume is
// unmounted, not removed.
func (p Plugin) Unpublish(ctx context.Context, dir string) error {
	return volumes.Remove(ctx, p.mounter, dir)
}
