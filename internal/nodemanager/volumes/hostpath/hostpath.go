// Package hostpath serves volumes that are a directory, file, socket or device of the node. These
// are volume objects of source hostPath, and pods that name a path themselves. It never removes
// what is at the path. It makes a missing path only if the type allows that: without a type, a
// directory, as container runtimes do.
//
// A directory is mounted with the mounts inside it, except the agent's own: with these, every pod
// would hold all other pods' volumes. Later mounts and unmounts propagate as far as the
// mountPropagation of the pod's containers allows. The node's own mounts stay mounted when the pod
// is gone.
package hostpath

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

// pointMode is the mode of mount points.
const pointMode = 0o750

// Plugin is the volume type. Its zero value isn't usable: see New.
type Plugin struct {
	mounter  mount.Mounter
	agentDir string
}

var _ volumes.Plugin = Plugin{}

// New returns the volume type. The agent's own mounts are in agentDir.
func New(mounter mount.Mounter, agentDir string) Plugin {
	return Plugin{mounter: mounter, agentDir: agentDir}
}

// Name implements volumes.Plugin.
func (Plugin) Name() string { return "kubernetes.io/host-path" }

// CanHandle implements volumes.Plugin.
func (Plugin) CanHandle(spec volumes.Spec) bool { return sourceOf(spec) != nil }

// sourceOf is the hostPath of a volume; nil if it is of another type.
func sourceOf(spec volumes.Spec) *corev1.HostPathVolumeSource {
	if spec.PersistentVolume != nil {
		return spec.PersistentVolume.Spec.HostPath
	}
	return spec.Volume.HostPath
}

// Path implements volumes.Plugin.
func (Plugin) Path(dir string) string { return dir }

// IsPublished implements volumes.Plugin.
func (Plugin) IsPublished(table mount.Table, _ volumes.Spec, dir string) (bool, error) {
	return table.IsMountPoint(dir), nil
}

// Publish implements volumes.Plugin.
func (p Plugin) Publish(ctx context.Context, spec volumes.Spec, dir string) error {
	source, err := open(sourceOf(spec))
	if err != nil {
		return err
	}
	defer source.Close()
	info, err := source.Stat()
	if err != nil {
		return err
	}
	if err := p.ensureKind(ctx, dir, info.IsDir()); err != nil {
		return err
	}
	if !info.IsDir() {
		return volumes.BindFile(p.mounter, source, dir, spec.Access)
	}
	return p.publishDirectory(spec, source, dir)
}

func (p Plugin) publishDirectory(spec volumes.Spec, source *os.File, dir string) error {
	propagation, err := propagationOf(spec)
	if err != nil {
		return err
	}
	// The mount table shows paths without symlinks.
	agentDir, err := filepath.EvalSymlinks(p.agentDir)
	if err != nil {
		return fmt.Errorf("finding the agent's own directory: %w", err)
	}
	tree := trees{p.mounter, mount.TreeOptions{Except: agentDir, Propagation: propagation}}
	return explainPropagation(volumes.Bind(tree, source, dir, spec.Access), agentDir)
}

// trees is a Mounter that binds directories with the mounts inside them.
type trees struct {
	mount.Mounter
	options mount.TreeOptions
}

// Bind implements mount.Mounter.
func (t trees) Bind(source *os.File, target string, access mount.Access) error {
	t.options.Access = access
	return t.BindTree(source, target, t.options)
}

// Unpublish implements volumes.Plugin. Whether dir is a directory or a file is known once nothing is
// mounted on it.
func (p Plugin) Unpublish(_ context.Context, dir string) error {
	if err := mount.UnmountBelow(p.mounter, dir); err != nil {
		return err
	}
	info, err := os.Lstat(dir)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.IsDir():
		return volumes.Unbind(p.mounter, dir, dir)
	default:
		return volumes.UnbindFile(p.mounter, dir)
	}
}
