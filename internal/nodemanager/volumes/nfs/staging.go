package nfs

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/mount/remote"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

// Staging serves the kubelet's calls for volumes of Stowage's nfs driver. Each volume has a mount
// of its own at its staging path, which is bound for each pod. As any server may hang, only the
// mount table is read.
type Staging struct {
	shares  Plugin
	records volumes.Records[stagedShare]
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
func (r stagedShare) isOf(share *share, staged mount.Point) bool {
	if r.Staging != staged.Path {
		return false
	}
	return r.Share == share.key() || r.Directory == share.directory() && (staged.Access == mount.ReadOnly) == share.isReadOnly()
}

// NewStaging returns a Staging with records in a folder of the agent's own, which it makes.
func NewStaging(mounter Mounter, folder string) (*Staging, error) {
	records, err := volumes.NewRecords[stagedShare](folder)
	if err != nil {
		return nil, err
	}
	return &Staging{shares: Plugin{mounter: mounter, resolve: lookUp, stages: newStages("")}, records: records}, nil
}

// Name is the driver's.
func (*Staging) Name() string { return stowagev1alpha1.NFSDriver }

// Stage mounts a volume for all pods of the node.
func (s *Staging) Stage(ctx context.Context, spec volumes.Spec, staging string) error {
	share, err := stagedOf(spec)
	if err != nil {
		return err
	}
	// An earlier unmount there may still run, even if its call has returned.
	release, err := s.shares.stages.acquire(ctx, staging)
	if err != nil {
		return err
	}
	defer release()
	there, err := s.isStaged(ctx, spec.Name(), share, staging)
	if err != nil || there {
		return err
	}
	// First, so that the record names what a crash leaves of the rest.
	if err := s.records.Write(spec.Name(), stagedShare{staging, share.key(), share.directory()}); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, mountTimeout)
	defer cancel()
	return s.shares.stage(ctx, share, staging)
}

// stagedOf is the share of a volume as it is mounted at a staging path: read-only if the volume is.
func stagedOf(spec volumes.Spec) (*share, error) {
	if spec.IsBlock() {
		return nil, fmt.Errorf("a directory of an NFS server can't be a device: %w", volumes.ErrInvalid)
	}
	share, err := shareOf(spec)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", volumes.ErrInvalid, err)
	}
	if share.access == mount.ReadOnly {
		share.Attributes |= unix.MOUNT_ATTR_RDONLY
	}
	return share, nil
}

// isStaged reports whether a share is mounted at a staging path. Another one is
// volumes.ErrOtherVolume, and so is the same volume at another path.
func (s *Staging) isStaged(ctx context.Context, handle string, share *share, staging string) (bool, error) {
	record, err := s.records.Find(handle)
	if err != nil {
		return false, err
	}
	table, err := s.shares.mounter.Table()
	if err != nil {
		return false, err
	}
	known := record != nil && table.IsMountPoint(record.Staging)
	point, there := table.At(staging)
	switch {
	case known && there && record.isOf(share, point):
		if record.Share != share.key() {
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
func (s *Staging) Publish(ctx context.Context, spec volumes.Spec, staging, target string) error {
	share, err := stagedOf(spec)
	if err != nil {
		return err
	}
	record, table, err := s.known(spec.Name())
	if err != nil {
		return err
	}
	staged, mounted := table.At(staging)
	if !mounted || record == nil || record.Staging != staging {
		return fmt.Errorf("publishing volume %s: it isn't mounted at %s: %w", spec.Name(), staging, volumes.ErrNotStaged)
	}
	if staged.Access == mount.ReadOnly {
		share.access = mount.ReadOnly
	}
	if there, mounted := table.At(target); mounted {
		return checkSame(there, staged, share.access)
	}
	if slices.Contains(spec.PersistentVolume.Spec.AccessModes, corev1.ReadWriteOncePod) && isUsed(table, staged) {
		return fmt.Errorf("publishing volume %s, which is for one pod: %w", spec.Name(), volumes.ErrInUse)
	}
	ctx, cancel := context.WithTimeout(ctx, mountTimeout)
	defer cancel()
	return s.shares.bind(ctx, share, staging, target)
}

// checkSame returns volumes.ErrOtherVolume if a mount isn't of the staged volume, or has another
// access.
func checkSame(there, staged mount.Point, access mount.Access) error {
	if isSame(there, staged) && there.Access == access {
		return nil
	}
	return fmt.Errorf("publishing at %s: %w", there.Path, volumes.ErrOtherVolume)
}

// isSame reports whether two mounts are of the same directory of the same server.
func isSame(one, other mount.Point) bool {
	return one.Device == other.Device && one.Root == other.Root && one.Source == other.Source
}

// Unpublish unmounts a volume from a pod's path. A mount that had to be detached without its
// server is an error; the next call succeeds.
func (s *Staging) Unpublish(ctx context.Context, _, target string) error {
	if err := s.shares.mounter.Unbind(ctx, target); err != nil {
		return err
	}
	return volumes.RemovePoint(target)
}

// Unstage unmounts a volume that no pod has any more. A silent server is an error as in Unpublish.
func (s *Staging) Unstage(ctx context.Context, handle, staging string) error {
	release, err := s.shares.stages.acquire(ctx, staging)
	if err != nil {
		return err
	}
	table, err := s.shares.mounter.Table()
	point, mounted := table.At(staging)
	if err == nil && mounted && isUsed(table, point) {
		err = fmt.Errorf("unstaging volume %s: %w", handle, volumes.ErrInUse)
	}
	if err == nil && !mounted {
		err = s.forget(handle, staging)
	}
	if err != nil || !mounted {
		release()
		return err
	}
	done, err := s.shares.mounter.Unmount(ctx, staging)
	// The lock is held until the kernel is done: until then, a new mount isn't safe.
	go func() {
		<-done
		release()
	}()
	if err != nil && !errors.Is(err, remote.ErrDetached) {
		return err
	}
	return errors.Join(err, s.forget(handle, staging))
}

// forget removes the record of a volume, unless it is staged elsewhere.
func (s *Staging) forget(handle, staging string) error {
	record, err := s.records.Find(handle)
	if err != nil || record != nil && record.Staging != staging {
		return err
	}
	return s.records.Remove(handle)
}

// Check returns volumes.ErrNotFound if a volume isn't mounted at a path, or, for an empty path,
// anywhere. It doesn't call the server.
func (s *Staging) Check(_ context.Context, handle, path string) error {
	record, table, err := s.known(handle)
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
func (s *Staging) known(handle string) (*stagedShare, mount.Table, error) {
	record, err := s.records.Find(handle)
	if err != nil {
		return nil, nil, err
	}
	table, err := s.shares.mounter.Table()
	return record, table, err
}
