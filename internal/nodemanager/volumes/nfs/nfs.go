// Package nfs serves volumes of source nfs: volume objects, and pods that name a server
// themselves. They have no driver and no handle. So each pod records which share it has, in the
// name of an empty directory beside its mount. Volumes of Stowage's own driver are of source csi.
//
// A share is mounted once per node, in a folder of the agent's own. It is bound from there for each
// pod, by the steps of package drivers/nfs. The mount table and the names of directories are the
// only state. Agents of the previous layout had volumes of the driver here, too: they are unmounted
// as all others are.
package nfs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/mount/remote"
	"github.com/stowage-dev/stowage/internal/nodemanager/drivers/nfs"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

const (
	// PluginName is the name of the volume type.
	PluginName = "kubernetes.io/nfs"
	// mountDir is the folder of a volume's directory that it is mounted on.
	mountDir = "mount"
	// stagePrefix begins the name of the empty directory beside it that records where the volume
	// is staged.
	stagePrefix = "staged-"
	// mountPointMode is that of directories which something is mounted on.
	mountPointMode = 0o750
)

var _ nfs.Mounter = remote.Calls{}

// Plugin is the volume type. Its zero value isn't usable: see New.
type Plugin struct {
	shares *nfs.Shares
	// folder is where shares are staged, each in a directory named by its key.
	folder string
}

var _ volumes.Plugin = Plugin{}

// New returns the volume type. Below the folder it mounts each share once.
func New(shares *nfs.Shares, folder string) (Plugin, error) {
	if err := os.MkdirAll(folder, mountPointMode); err != nil {
		return Plugin{}, fmt.Errorf("making the folder of NFS mounts: %w", err)
	}
	// The mount table shows paths without symlinks, and is compared with these.
	resolved, err := filepath.EvalSymlinks(folder)
	if err != nil {
		return Plugin{}, fmt.Errorf("finding the folder of NFS mounts: %w", err)
	}
	return Plugin{shares: shares, folder: resolved}, nil
}

// Name implements volumes.Plugin.
func (Plugin) Name() string { return PluginName }

// CanHandle implements volumes.Plugin.
func (Plugin) CanHandle(spec volumes.Spec) bool {
	if spec.PersistentVolume == nil {
		return spec.Volume.NFS != nil
	}
	return spec.PersistentVolume.Spec.NFS != nil
}

// Path implements volumes.Plugin.
func (Plugin) Path(dir string) string { return filepath.Join(dir, mountDir) }

// IsPublished implements volumes.Plugin. It reads the mount table and names: a stat of the mount
// would wait for the server. A share that was unmounted by hand where it is staged must be staged
// again: the next pod would get a mount of its own.
func (p Plugin) IsPublished(table mount.Table, _ volumes.Spec, dir string) (bool, error) {
	if !table.IsMountPoint(p.Path(dir)) {
		return false, nil
	}
	names, err := namesIn(dir)
	if err != nil {
		return false, err
	}
	// A share whose options changed has two.
	return slices.ContainsFunc(names, func(name string) bool {
		key, is := strings.CutPrefix(name, stagePrefix)
		return is && table.IsMountPoint(p.stagingOf(key))
	}), nil
}

// Publish implements volumes.Plugin.
func (p Plugin) Publish(ctx context.Context, spec volumes.Spec, dir string) error {
	share, err := nfs.ShareOf(spec)
	if err != nil {
		return err
	}
	// First, so that Unpublish finds what a crash leaves of the rest.
	if err := os.MkdirAll(filepath.Join(dir, stagePrefix+share.Key()), mountPointMode); err != nil {
		return fmt.Errorf("recording where the volume is staged: %w", err)
	}
	staging := p.stagingOf(share.Key())
	// Held until the share is bound: without a pod, another call may unstage it.
	release, err := p.shares.Acquire(ctx, staging)
	if err != nil {
		return err
	}
	defer release()
	ctx, cancel := context.WithTimeout(ctx, nfs.MountTimeout)
	defer cancel()
	if err := p.shares.Mount(ctx, share, staging); err != nil {
		return err
	}
	return p.shares.Bind(ctx, share, staging, p.Path(dir))
}

// Unpublish implements volumes.Plugin. A mount that had to be detached without its server is an
// error, so that an event says so; the next call succeeds.
func (p Plugin) Unpublish(ctx context.Context, dir string) error {
	if there, err := volumes.IsThere(dir); err != nil || !there {
		return err
	}
	if err := p.shares.Unbind(ctx, dir); err != nil {
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

// unstage unmounts a share that no pod has mounted any more. A mount that failed, or a crash, may
// have left the mount point alone.
func (p Plugin) unstage(ctx context.Context, key string) error {
	if there, err := p.has(key); err != nil || !there {
		return err
	}
	staging := p.stagingOf(key)
	err := p.shares.Unstage(ctx, staging, func() error { return volumes.RemoveEmptyDir(staging) })
	if errors.Is(err, volumes.ErrInUse) {
		return nil
	}
	return err
}

// has reports whether a share has a mount point. It reads names only: a server may hang.
func (p Plugin) has(key string) (bool, error) {
	names, err := namesIn(p.folder)
	return slices.Contains(names, key), err
}

func namesIn(dir string) ([]string, error) {
	folder, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	return folder.Readdirnames(-1)
}

func (p Plugin) stagingOf(key string) string { return filepath.Join(p.folder, key) }
