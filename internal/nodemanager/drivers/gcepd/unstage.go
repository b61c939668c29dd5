package gcepd

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/stowage-dev/stowage/internal/device/clouddisk"
	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/nodemanager/drivers/mounting"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

// Unpublish unmounts a disk from a pod. A mount that is in use stays, unless the disk is gone:
// then nothing can be written to it any more.
func (s *Driver) Unpublish(_ context.Context, handle, target string) error {
	folder, record, err := s.find(handle)
	if err != nil {
		return err
	}
	disk, err := s.diskOf(record)
	if err != nil {
		return err
	}
	if disk != nil {
		defer disk.Close()
	}
	if err := s.unmountBelow(target, record != nil && disk == nil); err != nil {
		return err
	}
	if disk != nil && record.Block {
		if err := s.protect(folder, *record, disk); err != nil {
			return err
		}
	}
	if err := volumes.RemovePoint(target); err != nil || !slices.Contains(folder.Targets, target) {
		return err
	}
	folder.Targets = slices.DeleteFunc(slices.Clone(folder.Targets), func(each string) bool { return each == target })
	return folder.write(folder.stagedFile(), folder.stagedDisk)
}

// diskOf opens the disk of a record; nil if it is gone, or there is no record.
func (s *Driver) diskOf(record *diskRecord) (*clouddisk.Disk, error) {
	if record == nil {
		return nil, nil
	}
	disk, err := openStaged(*record)
	if errors.Is(err, volumes.ErrGone) {
		return nil, nil
	}
	return disk, err
}

// unmountBelow unmounts all at a path and below it. If the disk is gone, it detaches what is in
// use.
func (s *Driver) unmountBelow(path string, gone bool) error {
	err := mount.UnmountBelow(s.Mounter, path)
	if err == nil || !gone {
		return err
	}
	return mount.UnmountBelow(mounting.Detaching{Mounter: s.Mounter}, path)
}

// Unstage removes all that Stage made. It succeeds when the disk is mounted in no mount namespace
// any more.
func (s *Driver) Unstage(ctx context.Context, handle, staging string) error {
	folder, record, err := s.find(handle)
	if err != nil {
		return err
	}
	elsewhere := folder.Staging != "" && folder.Staging != staging
	if record == nil || elsewhere {
		err = s.clear(staging)
	} else {
		folder = folderOf(folder.dir, stagedDisk{Handle: handle, Staging: staging, Targets: folder.Targets})
		err = s.removeStaged(ctx, folder, *record)
	}
	if err != nil {
		return fmt.Errorf("unstaging volume %s: %w", handle, err)
	}
	if elsewhere {
		return nil
	}
	return folder.forget(folder.stagedFile())
}

// clear unmounts what is at a staging path that has no record.
func (s *Driver) clear(staging string) error {
	table, err := s.Mounter.Table()
	if err != nil {
		return err
	}
	folder := folderOf("", stagedDisk{Staging: staging})
	if staged, mounted := table.At(staging); mounted {
		if err := mounting.RefuseUsed(table, staged); err != nil {
			return err
		}
		return mount.UnmountBelow(s.Mounter, staging)
	}
	return volumes.UnbindFile(s.Mounter, folder.node)
}

// removeStaged unmounts a disk that no pod has any more, and proves that nothing of it is left.
func (s *Driver) removeStaged(ctx context.Context, folder stagedFolder, record diskRecord) error {
	disk, err := s.diskOf(&record)
	if err != nil {
		return err
	}
	users, err := s.leftOf(stagedFolder{stagedDisk: folder.stagedDisk}, record)
	if disk != nil {
		defer disk.Close()
		users, err = s.usersOf(folder, disk)
	}
	if err == nil && len(users) > 0 {
		err = fmt.Errorf("%w: the disk is mounted at %s", volumes.ErrInUse, users[0].Path)
	}
	if err == nil && disk != nil {
		// A half-made file system must not leave this node: no other node knows that it isn't
		// data.
		_, err = s.finishHalf(ctx, disk, folder.diskFolder)
	}
	if err == nil && disk != nil {
		err = protectDisk(disk, record, nil)
	}
	if err != nil {
		return err
	}
	if err := s.unmountBelow(folder.Staging, disk == nil); err != nil {
		return err
	}
	if disk != nil {
		if err := refuseTaken(disk); err != nil {
			return err
		}
	}
	return volumes.RemovePoint(folder.node)
}

// refuseTaken returns an error if a disk is mounted where the agent doesn't see it.
func refuseTaken(disk *clouddisk.Disk) error {
	taken, err := disk.IsTaken()
	if err == nil && taken {
		err = fmt.Errorf("the volume's disk %s is still mounted elsewhere, or in a mount namespace that isn't the agent's: "+
			"unmount it there, and the node releases it: %w", disk.Path(), mount.ErrMounted)
	}
	return err
}
