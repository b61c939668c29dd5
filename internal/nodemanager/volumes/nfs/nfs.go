// Package nfs serves volumes that are directories of an NFS server: those of Stowage's nfs
// backend, volume objects of source nfs, and pods that name a server themselves.
//
// A directory is mounted once per node, in a folder of the agent's own, and bound from there for
// each pod. The mount table and the names of directories are the only state. Every call that
// waits for a server is made by remote.Apart and has a deadline: a server that hangs delays only
// its own volumes, and not for ever.
package nfs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/mount/remote"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

const (
	// mountDir is the folder of a volume's directory that it is mounted on.
	mountDir = "mount"
	// stagePrefix begins the name of the empty directory beside it that records where the volume
	// is staged.
	stagePrefix = "staged-"
	// mountPointMode is that of directories which something is mounted on.
	mountPointMode = 0o750
	// mountTimeout is how long a server may take until a volume is mounted.
	mountTimeout = 30 * time.Second
)

var _ Mounter = remote.Calls{}

// Plugin is the volume type. Its zero value isn't usable: see New.
type Plugin struct {
	mounter Mounter
	resolve resolve
	stages  *stages
}

var _ volumes.Plugin = Plugin{}

// New returns the volume type. Below the folder it mounts each volume once.
func New(mounter Mounter, folder string) (Plugin, error) {
	if err := os.MkdirAll(folder, mountPointMode); err != nil {
		return Plugin{}, fmt.Errorf("making the folder of NFS mounts: %w", err)
	}
	// The mount table shows paths without symlinks, and is compared with these.
	resolved, err := filepath.EvalSymlinks(folder)
	if err != nil {
		return Plugin{}, fmt.Errorf("finding the folder of NFS mounts: %w", err)
	}
	return Plugin{mounter: mounter, resolve: lookUp, stages: newStages(resolved)}, nil
}

// Name implements volumes.Plugin.
func (Plugin) Name() string { return "kubernetes.io/nfs" }

// CanHandle implements volumes.Plugin.
func (Plugin) CanHandle(spec volumes.Spec) bool {
	if spec.PersistentVolume == nil {
		return spec.Volume.NFS != nil
	}
	source := spec.PersistentVolume.Spec.PersistentVolumeSource
	return source.NFS != nil || isOurs(source.CSI)
}

func isOurs(source *corev1.CSIPersistentVolumeSource) bool {
	return source != nil && source.Driver == stowagev1alpha1.NFSDriver
}

// Path implements volumes.Plugin.
func (Plugin) Path(dir string) string { return filepath.Join(dir, mountDir) }

// IsPublished implements volumes.Plugin. It reads the mount table alone: a stat of the mount would
// wait for the server.
func (p Plugin) IsPublished(table mount.Table, _ volumes.Spec, dir string) (bool, error) {
	return table.IsMountPoint(p.Path(dir)), nil
}

// Publish implements volumes.Plugin.
func (p Plugin) Publish(ctx context.Context, spec volumes.Spec, dir string) error {
	share, err := shareOf(spec)
	if err != nil {
		return err
	}
	key := share.key()
	// First, so that Unpublish finds what a crash leaves of the rest.
	if err := os.MkdirAll(filepath.Join(dir, stagePrefix+key), mountPointMode); err != nil {
		return fmt.Errorf("recording where the volume is staged: %w", err)
	}
	release, err := p.stages.acquire(ctx, key)
	if err != nil {
		return err
	}
	defer release()
	ctx, cancel := context.WithTimeout(ctx, mountTimeout)
	defer cancel()
	stage := p.stages.path(key)
	if err := p.stage(ctx, share, stage); err != nil {
		return err
	}
	return p.bind(ctx, share, stage, p.Path(dir))
}

// stage mounts the share, unless it is mounted.
func (p Plugin) stage(ctx context.Context, share *share, stage string) error {
	table, err := p.mounter.Table()
	if err != nil || table.IsMountPoint(stage) {
		return err
	}
	if err := os.Mkdir(stage, mountPointMode); err != nil && !errors.Is(err, os.ErrExist) {
		return fmt.Errorf("making the mount point: %w", err)
	}
	address, err := p.resolve(ctx, share.Server)
	if err != nil {
		return err
	}
	return mountShare(ctx, p.mounter, share, address, stage)
}

// bind bind-mounts the staged share in the pod's directory.
func (p Plugin) bind(ctx context.Context, share *share, stage, target string) error {
	table, err := p.mounter.Table()
	if err != nil || table.IsMountPoint(target) {
		return err
	}
	if err := os.Mkdir(target, mountPointMode); err != nil && !errors.Is(err, os.ErrExist) {
		return fmt.Errorf("making the mount point: %w", err)
	}
	return explain(share, "", p.mounter.BindMount(ctx, stage, target, share.access))
}

// Unpublish implements volumes.Plugin. A mount that had to be detached without its server is an
// error, so that an event says so; the next call succeeds.
func (p Plugin) Unpublish(ctx context.Context, dir string) error {
	if there, err := volumes.IsThere(dir); err != nil || !there {
		return err
	}
	if err := p.mounter.Unbind(ctx, dir); err != nil {
		return err
	}
	if err := volumes.RemoveEmptyDir(p.Path(dir)); err != nil {
		return err
	}
	err := volumes.RemoveRecorded(dir, stagePrefix, func(key string) error { return p.unstage(ctx, key) })
	if err != nil {
		return err
	}
	return volumes.RemoveEmptyDir(dir)
}

// unstage unmounts a share that no pod has mounted any more.
func (p Plugin) unstage(ctx context.Context, key string) error {
	stage := p.stages.path(key)
	if there, err := p.stages.has(key); err != nil || !there {
		return err
	}
	release, err := p.stages.acquire(ctx, key)
	if err != nil {
		return err
	}
	// Read under the lock: the previous holder may have mounted the share for another pod, or
	// unmounted it.
	table, err := p.mounter.Table()
	point, mounted := table.At(stage)
	if err != nil || mounted && isUsed(table, point) {
		release()
		return err
	}
	if !mounted {
		// A mount that failed, or a crash, left the mount point alone.
		defer release()
		return volumes.RemoveEmptyDir(stage)
	}
	done, err := p.mounter.Unmount(ctx, stage)
	go func() {
		<-done
		release()
	}()
	if err != nil && !errors.Is(err, remote.ErrDetached) {
		return err
	}
	return errors.Join(err, volumes.RemoveEmptyDir(stage))
}

// isUsed reports whether what is mounted at a point is mounted elsewhere, too. Mounts of one
// server can share their device: their sources differ.
func isUsed(table mount.Table, at mount.Point) bool {
	for _, point := range table.Shows(at.Device, at.Root) {
		if point.Source == at.Source && point.Path != at.Path {
			return true
		}
	}
	return false
}
