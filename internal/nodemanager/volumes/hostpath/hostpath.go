// Package hostpath serves volumes that are a directory, file, socket or device of the
// node: volume objects of source hostPath, and pods that name a path themselves. What
// is there is the administrator's, and never removed. It is made only if the type of the
// volume says so, or says nothing at all: then a missing path becomes a directory, as
// container runtimes do it.
//
// A directory comes with what is mounted in it when the pod begins, but for what the
// agent mounts itself: of that, every pod would hold all other pods' volumes. What is
// mounted or unmounted on either side later shows on the other as far as the
// mountPropagation of the pod's containers says so. What the node has mounted stays
// mounted when the pod goes.
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

// pointMode is that of directories which something is mounted on.
const pointMode = 0o750

// Plugin is the volume type. Its zero value isn't usable: see New.
type Plugin struct {
	mounter  mount.Mounter
	agentDir string
}

var _ volumes.Plugin = Plugin{}

// New returns the volume type. In agentDir the agent mounts what it mounts.
func New(mounter mount.Mounter, agentDir string) Plugin {
	return Plugin{mounter: mounter, agentDir: agentDir}
}

// Name implements volumes.Plugin.
func (Plugin) Name() string { return "kubernetes.io/host-path" }

// CanHandle implements volumes.Plugin.
func (Plugin) CanHandle(spec volumes.Spec) bool { return sourceOf(spec) != nil }

// sourceOf is what a volume says of the path; nil if it is of another type.
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

// trees is a Mounter that binds directories with what is mounted in them.
type trees struct {
	mount.Mounter
	options mount.TreeOptions
}

// Bind implements mount.Mounter.
func (t trees) Bind(source *os.File, target string, access mount.Access) error {
	t.options.Access = access
	return t.BindTree(source, target, t.options)
}

// Unpublish implements volumes.Plugin. Whether it is a directory or a file shows once
// nothing is mounted on it any more.
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
