// Package csi serves volumes of source csi whose driver is one of Stowage's,
// without a CSI call: the node manager is their node side itself.
// Each driver says where a volume's files are; the rest is the same for all.
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

// Driver knows where the volumes of one CSI driver are on this node.
type Driver interface {
	// Open opens the top directory of a volume. The caller closes it.
	Open(ctx context.Context, volume *corev1.PersistentVolume) (*os.File, error)
}

// Plugin is the volume type. Its zero value isn't usable: see New.
type Plugin struct {
	mounter mount.Mounter
	drivers map[string]Driver
}

var _ volumes.Plugin = Plugin{}

// New returns the volume type, with the drivers that it serves by their names.
func New(mounter mount.Mounter, drivers map[string]Driver) Plugin {
	return Plugin{mounter: mounter, drivers: drivers}
}

// Name implements volumes.Plugin.
func (Plugin) Name() string { return "kubernetes.io/csi" }

// CanHandle implements volumes.Plugin.
func (p Plugin) CanHandle(spec volumes.Spec) bool {
	if spec.PersistentVolume == nil || spec.PersistentVolume.Spec.CSI == nil {
		return false
	}
	_, known := p.drivers[spec.PersistentVolume.Spec.CSI.Driver]
	return known
}

// Path implements volumes.Plugin.
func (Plugin) Path(dir string) string { return filepath.Join(dir, mountDir) }

// IsPublished implements volumes.Plugin.
func (p Plugin) IsPublished(table mount.Table, _ volumes.Spec, dir string) (bool, error) {
	return table.IsMountPoint(p.Path(dir)), nil
}

// Publish implements volumes.Plugin.
func (p Plugin) Publish(ctx context.Context, spec volumes.Spec, dir string) error {
	source, err := p.drivers[spec.PersistentVolume.Spec.CSI.Driver].Open(ctx, spec.PersistentVolume)
	if err != nil {
		return err
	}
	defer source.Close()
	return volumes.Bind(p.mounter, source, p.Path(dir), spec.Access)
}

// Unpublish implements volumes.Plugin.
func (p Plugin) Unpublish(_ context.Context, dir string) error {
	return volumes.Unbind(p.mounter, p.Path(dir), dir)
}
