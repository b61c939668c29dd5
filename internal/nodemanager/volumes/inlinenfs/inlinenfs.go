// Package inlinenfs serves inline volumes of Stowage's nfs driver, which pods have without a claim:
// a folder of the pod's own on the share of a StorageBackend, for the lifetime of the pod.
//
// The StorageBackend has the share, its mount options and the owner of the folder; the pod has no
// say in these. All of it is recorded on the node before the folder is made, and from then on the
// record decides: pod and backend may be changed, or gone. A folder without a record isn't this
// node's, and is never removed.
//
// Package nfs mounts the shares, and remote.Apart makes all calls to servers: a server that hangs
// delays only its own volumes.
package inlinenfs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/mount/remote"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes/nfs"
)

const (
	// parentDir is the directory of the folders in a share. No claim's volume has that name: their
	// directories don't begin with a dot.
	parentDir = ".stowage-inline"
	// shareDir is the folder of a volume's directory in which package nfs mounts it.
	shareDir = "share"
	// recordedPrefix begins the name of the empty directory beside it that names the volume's
	// record.
	recordedPrefix = "recorded-"
	// dirMode is the mode of the agent's own directories.
	dirMode = 0o750
)

// Folders makes and removes folders on a share that is mounted at base. remote.Apart is
// the real one.
type Folders interface {
	MakeFolder(ctx context.Context, base string, folder remote.Folder) error
	RemoveFolder(ctx context.Context, base string, folder remote.Folder) error
}

var _ Folders = remote.Calls{}

// Plugin is the volume type. Its zero value isn't usable: see New.
type Plugin struct {
	shares  nfs.Plugin
	folders Folders
	records records
	// workDir is where shares are mounted as a whole while a folder is made or removed.
	workDir string
}

var _ volumes.Plugin = Plugin{}

// New returns the volume type. Its records lie below the folder, which is the agent's.
func New(shares nfs.Plugin, folders Folders, folder string) (Plugin, error) {
	plugin := Plugin{shares: shares, folders: folders, records: records{filepath.Join(folder, "records")}, workDir: filepath.Join(folder, "work")}
	for _, dir := range []string{plugin.records.dir, plugin.workDir} {
		if err := os.MkdirAll(dir, dirMode); err != nil {
			return Plugin{}, fmt.Errorf("making the folder of pods' own NFS volumes: %w", err)
		}
	}
	var err error
	// The mount table shows paths without symlinks, and is compared with these.
	if plugin.workDir, err = filepath.EvalSymlinks(plugin.workDir); err != nil {
		return Plugin{}, fmt.Errorf("finding the folder of pods' own NFS volumes: %w", err)
	}
	return plugin, nil
}

// Name implements volumes.Plugin. It differs from that of claims' volumes: Unpublish of this type
// removes data, and theirs never does.
func (Plugin) Name() string { return "stowage.dev/inline-nfs" }

// CanHandle implements volumes.Plugin.
func (Plugin) CanHandle(spec volumes.Spec) bool {
	source := spec.Volume.CSI
	return spec.PersistentVolume == nil && source != nil && source.Driver == stowagev1alpha1.NFSDriver
}

// Path implements volumes.Plugin.
func (p Plugin) Path(dir string) string { return p.shares.Path(filepath.Join(dir, shareDir)) }

// IsPublished implements volumes.Plugin.
func (p Plugin) IsPublished(table mount.Table, spec volumes.Spec, dir string) (bool, error) {
	return p.shares.IsPublished(table, spec, filepath.Join(dir, shareDir))
}

// Publish implements volumes.Plugin.
func (p Plugin) Publish(ctx context.Context, spec volumes.Spec, dir string) error {
	id, err := idOf(spec)
	if err != nil {
		return err
	}
	// First, so that Unpublish finds what a crash leaves of the rest.
	if err := os.MkdirAll(filepath.Join(dir, recordedPrefix+id), dirMode); err != nil {
		return fmt.Errorf("naming the volume's record: %w", err)
	}
	volume, err := p.ensureRecord(id, spec)
	if err != nil {
		return err
	}
	if err := p.ensureFolder(ctx, id, volume); err != nil {
		return err
	}
	return p.shares.Publish(ctx, volume.mountedBy(spec), filepath.Join(dir, shareDir))
}

// ensureRecord finds the record of a volume, or makes it from its backend.
func (p Plugin) ensureRecord(id string, spec volumes.Spec) (*record, error) {
	found, err := p.records.find(id)
	if err != nil || found != nil {
		return found, err
	}
	made, err := recordOf(id, spec.Backend)
	if err != nil {
		return nil, err
	}
	return made, p.records.write(id, made)
}

func (p Plugin) ensureFolder(ctx context.Context, id string, volume *record) error {
	return p.onShare(ctx, id, volume, func(share string) error {
		return explain(volume, p.folders.MakeFolder(ctx, share, volume.folder()))
	})
}

// onShare mounts a volume's whole share, where no pod has it, while work runs.
func (p Plugin) onShare(ctx context.Context, id string, volume *record, work func(share string) error) error {
	dir := filepath.Join(p.workDir, id)
	err := p.shares.Publish(ctx, volume.wholeShare(), dir)
	if err == nil {
		err = work(p.shares.Path(dir))
	}
	// Also after the context has ended: no pass of another volume unmounts it.
	return errors.Join(err, p.shares.Unpublish(context.WithoutCancel(ctx), dir))
}

// Unpublish implements volumes.Plugin. The record goes after the folder, and dir, which
// leads to it, last.
func (p Plugin) Unpublish(ctx context.Context, dir string) error {
	if there, err := volumes.IsThere(dir); err != nil || !there {
		return err
	}
	if err := p.shares.Unpublish(ctx, filepath.Join(dir, shareDir)); err != nil {
		return err
	}
	err := volumes.RemoveRecorded(dir, recordedPrefix, func(id string) error { return p.removeRecorded(ctx, id) })
	if err != nil {
		return err
	}
	return volumes.RemoveEmptyDir(dir)
}

// removeRecorded removes a folder and then its record. Without a record, no folder was made, or an
// administrator gave it up by removing the record: the share may still be mounted.
func (p Plugin) removeRecorded(ctx context.Context, id string) error {
	volume, err := p.records.find(id)
	if err != nil {
		return err
	}
	if volume == nil {
		err = p.shares.Unpublish(ctx, filepath.Join(p.workDir, id))
	} else if err = p.removeFolder(ctx, id, volume); err != nil {
		err = fmt.Errorf("%w: the pod is kept until its folder %s is removed from %s:%s; if that share is gone for good, remove the record %s",
			err, volume.folderPath(), volume.Server, volume.Path, p.records.path(id))
	}
	if err != nil {
		return err
	}
	return p.records.remove(id)
}

func (p Plugin) removeFolder(ctx context.Context, id string, volume *record) error {
	return p.onShare(ctx, id, volume, func(share string) error {
		return explain(volume, p.folders.RemoveFolder(ctx, share, volume.folder()))
	})
}

// explain adds to an error of the server what to do about it.
func explain(volume *record, err error) error {
	switch {
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES):
		return fmt.Errorf("the server doesn't let this node act as root on %s:%s: export the share with no_root_squash, "+
			"or set nfs.access.uid and gid of its StorageBackend to what the server makes of root, and let pods run as that user: %w", volume.Server, volume.Path, err)
	case errors.Is(err, remote.ErrSilent):
		return fmt.Errorf("the server %s doesn't answer: is it up, and reachable from this node?: %w", volume.Server, err)
	default:
		return err
	}
}
