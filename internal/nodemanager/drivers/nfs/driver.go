// Package nfs implements the node side of the driver for directories of NFS servers. Package csi
// calls it for a kubelet. On a node without one, the volume type for csi volumes does. The volume
// type for nfs volumes, which have no driver, uses the same steps: see Shares.
//
// Stage mounts a directory at the staging path, and Publish binds that for each pod. The driver makes
// and removes nothing on a server. The type remote.Calls makes every call that waits for a server,
// and each has a deadline. So a server that hangs delays only its own volumes, and not for ever.
package nfs

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/nodemanager/drivers/mounting"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

// Driver implements drivers.Driver for directories of NFS servers. Each volume has a mount of its
// own at its staging path, which is bound for each pod. As any server may hang, the driver reads
// the mount table alone, and inspects no path.
type Driver struct {
	shares  *Shares
	records volumes.Records[stagedShare]
	earlier earlier
}

// stagedShare is the staging record of a share. It is written before the share is mounted. The
// source of a mount in the mount table is the server's word.
type stagedShare struct {
	Staging string `json:"staging"`
	Share   string `json:"share"`
	// Directory is the server and path, without the options. Earlier agents didn't write it.
	Directory string `json:"directory,omitempty"`
}

// isOf reports whether a share is the one mounted at a path. The volume's mount options may have
// changed since it was mounted.
func (r stagedShare) isOf(share *Share, staged mount.Point) bool {
	if r.Staging != staged.Path {
		return false
	}
	return r.Share == share.Key() || r.Directory == share.directory() && (staged.Access == mount.ReadOnly) == share.isReadOnly()
}

// New returns the driver. Its records lie in folder, which is the agent's own; New makes it if it
// doesn't exist.
func New(shares *Shares, folder string) (*Driver, error) {
	records, err := volumes.NewRecords[stagedShare](folder)
	if err != nil {
		return nil, err
	}
	return &Driver{shares: shares, records: records}, nil
}

// WithEarlier has the driver take over what agents of the previous layout mounted in a folder. The
// Shares also mount for the volume type that has that folder now. Call it before any other method.
func (d *Driver) WithEarlier(folder string) *Driver {
	// The mount table, with which this is compared, has paths without symlinks.
	if resolved, err := filepath.EvalSymlinks(folder); err == nil {
		folder = resolved
	}
	d.earlier = earlier{d.shares, folder}
	return d
}

// Name returns the driver's name.
func (*Driver) Name() string { return stowagev1alpha1.NFSDriver }

// IsRemote implements drivers.Remote.
func (*Driver) IsRemote() bool { return true }

// Stage mounts a volume for all pods of the node.
func (d *Driver) Stage(ctx context.Context, spec volumes.Spec, staging string) error {
	share, err := stagedOf(spec)
	if err != nil {
		return err
	}
	// An earlier unmount there may still run, even if its call has returned.
	release, err := d.shares.Acquire(ctx, staging)
	if err != nil {
		return err
	}
	defer release()
	there, err := d.isStaged(ctx, spec.Name(), share, staging)
	if err == nil && !there {
		err = d.mount(ctx, spec.Name(), share, staging)
	}
	if err != nil {
		return err
	}
	// Also if it was staged: a crash may have come between the two.
	return d.earlier.drop(ctx, staging)
}

// mount records a share, and mounts it.
func (d *Driver) mount(ctx context.Context, handle string, share *Share, staging string) error {
	// First, so that the record names what a crash leaves of the rest.
	if err := d.records.Write(handle, stagedShare{staging, share.Key(), share.directory()}); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, MountTimeout)
	defer cancel()
	bound, err := d.earlier.bind(ctx, share, staging)
	if err != nil || bound {
		return err
	}
	return d.shares.Mount(ctx, share, staging)
}

// stagedOf is the share of a volume as it is mounted at a staging path: read-only if the volume is.
func stagedOf(spec volumes.Spec) (*Share, error) {
	if spec.IsBlock() {
		return nil, fmt.Errorf("a directory of an NFS server can't be a device: %w", volumes.ErrInvalid)
	}
	share, err := ShareOf(spec)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", volumes.ErrInvalid, err)
	}
	if share.Access == mount.ReadOnly {
		share.Attributes |= unix.MOUNT_ATTR_RDONLY
	}
	return share, nil
}

// isStaged reports whether a share is mounted at a staging path. Another one is
// volumes.ErrOtherVolume, and so is the same volume at another path.
func (d *Driver) isStaged(ctx context.Context, handle string, share *Share, staging string) (bool, error) {
	record, table, err := d.known(handle)
	if err != nil {
		return false, err
	}
	known := record != nil && table.IsMountPoint(record.Staging)
	point, there := table.At(staging)
	switch {
	case known && there && record.isOf(share, point):
		if record.Share != share.Key() {
			logf.FromContext(ctx).Info("the share stays mounted with its earlier mount options: the volume's new ones apply once no pod of this node uses it",
				"volume", handle)
		}
		return true, nil
	case known || there:
		return false, fmt.Errorf("staging volume %s at %s: %w", handle, staging, volumes.ErrOtherVolume)
	}
	return false, nil
}

// Publish bind-mounts a staged volume for one pod.
func (d *Driver) Publish(ctx context.Context, spec volumes.Spec, staging, target string) error {
	share, err := stagedOf(spec)
	if err != nil {
		return err
	}
	record, table, err := d.known(spec.Name())
	if err != nil {
		return err
	}
	staged, mounted := table.At(staging)
	if !mounted || record == nil || record.Staging != staging {
		return fmt.Errorf("publishing volume %s: it isn't mounted at %s: %w", spec.Name(), staging, volumes.ErrNotStaged)
	}
	if staged.Access == mount.ReadOnly {
		share.Access = mount.ReadOnly
	}
	if there, mounted := table.At(target); mounted {
		return checkSame(there, staged, share.Access)
	}
	if slices.Contains(spec.PersistentVolume.Spec.AccessModes, corev1.ReadWriteOncePod) && isUsedByOthers(table, staged, target) {
		return fmt.Errorf("publishing volume %s, which is for one pod: %w", spec.Name(), volumes.ErrInUse)
	}
	ctx, cancel := context.WithTimeout(ctx, MountTimeout)
	defer cancel()
	return d.shares.Bind(ctx, share, staging, target)
}

// isUsedByOthers reports whether a staged share is mounted for another pod than the one that is to
// see it at target. Another path of that pod counts, too. That pod may have parts of it, and what an
// agent of the previous layout mounted.
func isUsedByOthers(table mount.Table, staged mount.Point, target string) bool {
	pod := mounting.PodOf(target)
	return slices.ContainsFunc(usersOf(table, staged), func(point mount.Point) bool {
		inPod, is := strings.CutPrefix(point.Path, pod+"/")
		return pod == "" || !is || !strings.HasPrefix(inPod, "volume-subpaths/") && !strings.HasPrefix(inPod, earlierVolumes)
	})
}

// checkSame returns volumes.ErrOtherVolume if a mount isn't of the staged volume, or has another
// access.
func checkSame(there, staged mount.Point, access mount.Access) error {
	if isSame(there, staged) && there.Access == access {
		return nil
	}
	return fmt.Errorf("publishing at %s: %w", there.Path, volumes.ErrOtherVolume)
}

// Unpublish unmounts a volume from a pod's path. A mount that had to be detached without its
// server is an error; the next call succeeds.
func (d *Driver) Unpublish(ctx context.Context, _, target string) error {
	if err := d.shares.Unbind(ctx, target); err != nil {
		return err
	}
	return volumes.RemovePoint(target)
}

// Unstage unmounts a volume that no pod has any more. A silent server is an error as in Unpublish:
// the next call succeeds at once, even if the kernel isn't done with the share. Stage waits for
// that.
func (d *Driver) Unstage(ctx context.Context, handle, staging string) error {
	record, table, err := d.known(handle)
	if err != nil {
		return err
	}
	if !table.IsMountPoint(staging) && (record == nil || record.Staging != staging) {
		// A crash may have left half a record.
		return d.forget(handle, staging)
	}
	if err := d.earlier.drop(ctx, staging); err != nil {
		return err
	}
	err = d.shares.Unstage(ctx, staging, func() error { return d.forget(handle, staging) })
	if errors.Is(err, volumes.ErrInUse) {
		return fmt.Errorf("unstaging volume %s: %w", handle, err)
	}
	return err
}

// forget removes the record of a volume, unless it is staged elsewhere.
func (d *Driver) forget(handle, staging string) error {
	record, err := d.records.Find(handle)
	if err != nil || record != nil && record.Staging != staging {
		return err
	}
	return d.records.Remove(handle)
}

// Check returns volumes.ErrNotFound if a volume isn't mounted at a path, or, for an empty path,
// anywhere. It doesn't call the server.
func (d *Driver) Check(_ context.Context, handle, path string) error {
	record, table, err := d.known(handle)
	if err != nil {
		return err
	}
	there := false
	if record != nil {
		var staged, seen mount.Point
		staged, there = table.At(record.Staging)
		if there && path != "" {
			seen, there = table.At(path)
			there = there && isSame(seen, staged)
		}
	}
	if !there {
		return fmt.Errorf("volume %s isn't mounted at %q: %w", handle, path, volumes.ErrNotFound)
	}
	return nil
}

// known returns the record of a volume, nil if there is none, and the mount table.
func (d *Driver) known(handle string) (*stagedShare, mount.Table, error) {
	record, err := d.records.Find(handle)
	if err != nil {
		return nil, nil, err
	}
	table, err := d.shares.Table()
	return record, table, err
}
