// Package hostpath serves volumes whose volume object names a directory of the
// node (source hostPath). The directory is the administrator's: it is never
// removed. What is mounted below it is not carried over. A pod that names a
// hostPath itself, without a claim, isn't served yet.
package hostpath

import (
	"context"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

// mode of a directory that is made because its volume says DirectoryOrCreate.
const mode = 0o755

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
func (Plugin) Name() string { return "kubernetes.io/host-path" }

// CanHandle implements volumes.Plugin.
func (Plugin) CanHandle(spec volumes.Spec) bool {
	return spec.PersistentVolume != nil && spec.PersistentVolume.Spec.HostPath != nil
}

// Path implements volumes.Plugin.
func (Plugin) Path(dir string) string { return dir }

// IsPublished implements volumes.Plugin.
func (Plugin) IsPublished(table mount.Table, _ volumes.Spec, dir string) (bool, error) {
	return table.IsMountPoint(dir), nil
}

// Publish implements volumes.Plugin.
func (p Plugin) Publish(_ context.Context, spec volumes.Spec, dir string) error {
	host := spec.PersistentVolume.Spec.HostPath
	kind := corev1.HostPathUnset
	if host.Type != nil {
		kind = *host.Type
	}
	switch kind {
	case corev1.HostPathUnset, corev1.HostPathDirectory:
	case corev1.HostPathDirectoryOrCreate:
		if err := os.MkdirAll(host.Path, mode); err != nil {
			return fmt.Errorf("making the hostPath directory: %w", err)
		}
	default:
		return fmt.Errorf("hostPath with type %s is %w: use Directory or DirectoryOrCreate", kind, volumes.ErrNotSupported)
	}
	source, err := os.OpenFile(host.Path, unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return fmt.Errorf("opening the hostPath, which must be a directory: %w", err)
	}
	defer source.Close()
	return volumes.Bind(p.mounter, source, dir, spec.Access)
}

// Unpublish implements volumes.Plugin.
func (p Plugin) Unpublish(_ context.Context, dir string) error {
	return volumes.Unbind(p.mounter, dir, dir)
}
