package inlinenfs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"

	"golang.org/x/sys/unix"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/mount/remote"
	"github.com/stowage-dev/stowage/internal/nodemanager/drivers"
	nfsdriver "github.com/stowage-dev/stowage/internal/nodemanager/drivers/nfs"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes/nfs"
)

// inlineHandle is the handle that a kubelet gives to inline volumes. No claim's volume has such a
// handle: those of the nfs backend have other forms.
var inlineHandle = regexp.MustCompile(`^csi-[0-9a-f]{64}$`)

// Backends finds the StorageBackend of a name.
type Backends func(ctx context.Context, name string) (*stowagev1alpha1.StorageBackend, error)

// Folders makes and removes folders on a share that is mounted at base. remote.Calls is
// the real one.
type Folders interface {
	MakeFolder(ctx context.Context, base string, folder remote.Folder) error
	RemoveFolder(ctx context.Context, base string, folder remote.Folder) error
}

var _ Folders = remote.Calls{}

// Driver is the nfs driver with inline volumes. An inline folder is mounted at the pod's path
// itself, and recorded by its id: for a kubelet, that is the handle. Its whole share is mounted
// only while the folder is made or removed, in a folder of the agent's own.
type Driver struct {
	*nfsdriver.Driver
	shares   nfs.Plugin
	folders  Folders
	backends Backends
	records  records
	// workDir is where shares are mounted as a whole while a folder is made or removed.
	workDir string
}

var (
	_ drivers.Inliner = Driver{}
	_ drivers.Remote  = Driver{}
)

// Options are the dependencies of a Driver.
type Options struct {
	// Claimed is the driver for volumes of claims.
	Claimed *nfsdriver.Driver
	// Shares mounts whole shares, and Folders makes and removes folders on them.
	Shares  nfs.Plugin
	Folders Folders
	// Backends finds the backend that a pod names. Nil where no kubelet calls: the caller has
	// found the backend.
	Backends Backends
	// Folder is the driver's own, for its records. NewDriver makes it if it doesn't exist.
	Folder string
}

// NewDriver returns a Driver.
func NewDriver(options Options) (Driver, error) {
	driver := Driver{
		Driver: options.Claimed, shares: options.Shares, folders: options.Folders, backends: options.Backends,
		records: records{filepath.Join(options.Folder, "records")}, workDir: filepath.Join(options.Folder, "work"),
	}
	for _, dir := range []string{driver.records.dir, driver.workDir} {
		if err := os.MkdirAll(dir, dirMode); err != nil {
			return Driver{}, fmt.Errorf("making the folder of pods' own NFS volumes: %w", err)
		}
	}
	var err error
	// The mount table shows paths without symlinks, and is compared with these.
	if driver.workDir, err = filepath.EvalSymlinks(driver.workDir); err != nil {
		return Driver{}, fmt.Errorf("finding the folder of pods' own NFS volumes: %w", err)
	}
	return driver, nil
}

// IsInline reports whether a handle is of an inline volume.
func (Driver) IsInline(handle string) bool { return inlineHandle.MatchString(handle) }

// PublishInline makes a pod's own folder, and mounts it at target.
func (d Driver) PublishInline(ctx context.Context, spec volumes.Spec, handle, target string) error {
	if !d.IsInline(handle) {
		return fmt.Errorf("%q is no handle of an inline volume: %w", handle, volumes.ErrInvalid)
	}
	known, err := d.records.find(handle)
	if err == nil && known == nil {
		spec.Backend, err = d.backendOf(ctx, spec)
	}
	if err != nil {
		return err
	}
	return d.publish(ctx, spec, handle, target)
}

// backendOf finds the backend that the pod of a new volume names.
func (d Driver) backendOf(ctx context.Context, spec volumes.Spec) (*stowagev1alpha1.StorageBackend, error) {
	name, err := BackendNamedBy(spec.Volume.CSI)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", volumes.ErrInvalid, err)
	}
	backend, err := d.backends(ctx, name)
	if err != nil {
		return nil, err
	}
	return backend, CheckAllows(backend)
}

// publish makes a pod's folder, and mounts it at target, whose parent exists. The record decides,
// if there is one: the pod or the backend may have been changed since.
func (d Driver) publish(ctx context.Context, spec volumes.Spec, id, target string) error {
	volume, err := d.ensureRecord(id, spec)
	if err != nil {
		return err
	}
	// A mounted one was made before: its server isn't called again.
	if missing := d.Check(ctx, id, target); missing != nil {
		if err := d.ensureFolder(ctx, id, volume); err != nil {
			return err
		}
	}
	return d.Stage(ctx, volume.mountedBy(spec), target)
}

// ensureRecord finds the record of a volume, or makes it from its backend.
func (d Driver) ensureRecord(id string, spec volumes.Spec) (*record, error) {
	found, err := d.records.find(id)
	if err != nil || found != nil {
		return found, err
	}
	made, err := recordOf(id, spec.Backend)
	if err != nil {
		return nil, err
	}
	return made, d.records.write(id, made)
}

// UnpublishInline unmounts and removes a pod's own folder, whatever became of the backend. The
// record goes last.
func (d Driver) UnpublishInline(ctx context.Context, handle, target string) error {
	if !d.IsInline(handle) {
		return fmt.Errorf("%q is no handle of an inline volume: %w", handle, volumes.ErrInvalid)
	}
	if err := d.unmount(ctx, handle, target); err != nil {
		return err
	}
	return d.removeRecorded(ctx, handle)
}

// unmount unmounts a folder from its pod. If it is mounted elsewhere, the folder must stay: that is
// an error.
func (d Driver) unmount(ctx context.Context, id, target string) error {
	if err := d.Unstage(ctx, id, target); err != nil {
		return err
	}
	if err := volumes.RemovePoint(target); err != nil {
		return err
	}
	elsewhere := d.Check(ctx, id, "")
	if elsewhere == nil {
		return fmt.Errorf("removing the folder of volume %s, which is mounted at another path: %w", id, volumes.ErrInUse)
	}
	if !errors.Is(elsewhere, volumes.ErrNotFound) {
		return elsewhere
	}
	return nil
}

// removeRecorded removes a folder and then its record. Without a record, no folder was made, or an
// administrator gave it up by removing the record: the share may still be mounted.
func (d Driver) removeRecorded(ctx context.Context, id string) error {
	volume, err := d.records.find(id)
	if err != nil {
		return err
	}
	if volume == nil {
		err = d.shares.Unpublish(ctx, filepath.Join(d.workDir, id))
	} else if err = d.removeFolder(ctx, id, volume); err != nil {
		err = fmt.Errorf("%w: the pod is kept until its folder %s is removed from %s:%s; if that share is gone for good, remove the record %s",
			err, volume.folderPath(), volume.Server, volume.Path, d.records.path(id))
	}
	if err != nil {
		return err
	}
	return d.records.remove(id)
}

func (d Driver) ensureFolder(ctx context.Context, id string, volume *record) error {
	return d.onShare(ctx, id, volume, func(share string) error {
		return explain(volume, d.folders.MakeFolder(ctx, share, volume.folder()))
	})
}

func (d Driver) removeFolder(ctx context.Context, id string, volume *record) error {
	return d.onShare(ctx, id, volume, func(share string) error {
		return explain(volume, d.folders.RemoveFolder(ctx, share, volume.folder()))
	})
}

// onShare mounts a volume's whole share, where no pod has it, while work runs.
func (d Driver) onShare(ctx context.Context, id string, volume *record, work func(share string) error) error {
	dir := filepath.Join(d.workDir, id)
	err := d.shares.Publish(ctx, volume.wholeShare(), dir)
	if err == nil {
		err = work(d.shares.Path(dir))
	}
	// Also after the context has ended: no pass of another volume unmounts it.
	return errors.Join(err, d.shares.Unpublish(context.WithoutCancel(ctx), dir))
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
