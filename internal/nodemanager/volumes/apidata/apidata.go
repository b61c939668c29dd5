// Package apidata is what the volume types that project objects of the API server have in common:
// configMap, secret, downwardAPI and projected. Each of them is a package beside this one, and a
// Type. Package content reads their files, and package atomicdir writes them.
//
// Secrets are only ever in memory: they are written to a directory that the kernel reports as a
// tmpfs, and nowhere else.
package apidata

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/mount/safepath"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes/atomicdir"
	"github.com/stowage-dev/stowage/internal/ownership"
)

const (
	// mountPointMode is the mode of a tmpfs's mount point.
	mountPointMode = 0o750
)

// Type is what differs between the volume types.
type Type struct {
	// Name is the plug-in's.
	Name string
	// InMemory: its volumes are never on disk, nor swapped where the kernel can refuse that. The
	// others are on disk, as no pod is charged for the memory.
	InMemory bool
	// Is reports whether a volume is of this type.
	Is func(corev1.Volume) bool
}

// Plugin is a volume type. Its zero value isn't usable: see New.
type Plugin struct {
	mounter mount.Mounter
	kind    Type
	owner   ownership.Owner
}

var _ volumes.Refresher = Plugin{}

// New returns a volume type.
func New(mounter mount.Mounter, kind Type) Plugin {
	return Plugin{mounter: mounter, kind: kind}
}

// WithOwner returns a volume type that labels its volumes in memory by this owner. Container
// runtimes label those on disk.
func (p Plugin) WithOwner(owner ownership.Owner) Plugin {
	p.owner = owner
	return p
}

// Name implements volumes.Plugin.
func (p Plugin) Name() string { return p.kind.Name }

// CanHandle implements volumes.Plugin.
func (p Plugin) CanHandle(spec volumes.Spec) bool {
	return spec.PersistentVolume == nil && p.kind.Is(spec.Volume)
}

// Path implements volumes.Plugin.
func (Plugin) Path(dir string) string { return dir }

// IsPublished implements volumes.Plugin.
func (p Plugin) IsPublished(table mount.Table, _ volumes.Spec, dir string) (bool, error) {
	if p.kind.InMemory && !isMemoryAt(table, dir) {
		return false, nil
	}
	opened, err := os.OpenRoot(dir)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer opened.Close()
	return atomicdir.IsWritten(opened), nil
}

// Publish implements volumes.Plugin.
func (p Plugin) Publish(ctx context.Context, spec volumes.Spec, dir string) error {
	if err := p.ensureDir(dir); err != nil {
		return err
	}
	if p.kind.InMemory {
		if err := ensureMemory(p.mounter, dir, p.owner.Label(spec.Pod, spec.Volume.Name)); err != nil {
			return err
		}
	}
	opened, err := open(dir, p.kind.InMemory)
	if err != nil {
		return err
	}
	defer opened.Close()
	if err := ensureMountPoints(opened, spec.Pod, spec.Name()); err != nil {
		return err
	}
	return write(ctx, spec, opened)
}

// Refresh implements volumes.Refresher.
func (p Plugin) Refresh(ctx context.Context, spec volumes.Spec, dir string) error {
	opened, err := open(dir, p.kind.InMemory)
	if err != nil {
		return err
	}
	defer opened.Close()
	return write(ctx, spec, opened)
}

func write(ctx context.Context, spec volumes.Spec, dir *os.Root) error {
	if spec.Files == nil {
		return fmt.Errorf("writing volume %s: its content wasn't read", spec.Name())
	}
	return atomicdir.Write(ctx, dir, spec.Files, groupOf(spec.Pod))
}

// Unpublish implements volumes.Plugin.
func (p Plugin) Unpublish(ctx context.Context, dir string) error {
	return volumes.Remove(ctx, p.mounter, dir)
}

func (p Plugin) ensureDir(dir string) error {
	parent, err := safepath.OpenDir(filepath.Dir(dir))
	if err != nil {
		return err
	}
	defer parent.Close()
	if p.kind.InMemory {
		return safepath.EnsureDir(parent, filepath.Base(dir), mountPointMode)
	}
	return safepath.EnsureDir(parent, filepath.Base(dir), mode)
}

// groupOf is the fsGroup of a pod; nil if it has none.
func groupOf(pod *corev1.Pod) *int64 {
	if pod == nil || pod.Spec.SecurityContext == nil {
		return nil
	}
	return pod.Spec.SecurityContext.FSGroup
}
