package gcepd

import (
	"context"
	"fmt"
	"os"
	"slices"

	"github.com/stowage-dev/stowage/internal/device/clouddisk"
	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/nodemanager/drivers/mounting"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

// Publish makes a staged disk visible for one pod.
func (s *Driver) Publish(_ context.Context, spec volumes.Spec, staging, target string) error {
	folder, record, err := s.find(spec.Name())
	if err != nil {
		return err
	}
	if record == nil || folder.Staging != staging || record.Block != spec.IsBlock() {
		return fmt.Errorf("publishing volume %s: it isn't staged at %s: %w", spec.Name(), staging, volumes.ErrNotStaged)
	}
	disk, err := openStaged(*record)
	if err != nil {
		return fmt.Errorf("publishing volume %s: %w", spec.Name(), err)
	}
	defer disk.Close()
	if err := s.recordTarget(folder, target); err != nil {
		return err
	}
	if record.Block {
		return s.publishDevice(spec, disk, folder, *record, target)
	}
	return mounting.PublishStaged(s.Mounter, spec, staging, target)
}

// recordTarget records a path at which a disk is about to be mounted, unless something is mounted
// there.
func (s *Driver) recordTarget(folder stagedFolder, target string) error {
	table, err := s.Mounter.Table()
	if err != nil || table.IsMountPoint(target) || slices.Contains(folder.Targets, target) {
		return err
	}
	folder.Targets = append(slices.Clone(folder.Targets), target)
	return folder.write(folder.stagedFile(), folder.stagedDisk)
}

func (s *Driver) publishDevice(spec volumes.Spec, disk *clouddisk.Disk, folder stagedFolder, record diskRecord, target string) error {
	table, err := s.Mounter.Table()
	if err != nil {
		return err
	}
	if !table.IsMountPoint(folder.node) {
		return fmt.Errorf("publishing volume %s: its device isn't staged at %s: %w", spec.Name(), folder.Staging, volumes.ErrNotStaged)
	}
	node, err := os.OpenFile(disk.Path(), mounting.OpenOnly, 0)
	if err != nil {
		return err
	}
	defer node.Close()
	users, err := s.usersOf(folder, disk)
	if err != nil {
		return err
	}
	if err := mounting.RefuseSecondPod(spec, table.IsMountPoint(target), users); err != nil {
		return err
	}
	access := mounting.DeviceAccess(spec)
	if record.ForReaders {
		access = mount.ReadOnly
	}
	if err := volumes.BindFileExactly(s.Mounter, node, target, access); err != nil {
		return err
	}
	return s.protect(folder, record, disk)
}

// protect makes a device read-only while no pod that has it may write it.
func (s *Driver) protect(folder stagedFolder, record diskRecord, disk *clouddisk.Disk) error {
	users, err := s.usersOf(folder, disk)
	if err != nil {
		return err
	}
	return protectDisk(disk, record, users)
}

// protectDisk makes a device read-only while no pod that has it may write it, unless the
// attachment is read-only anyway. For a file system, the mount does so.
func protectDisk(disk *clouddisk.Disk, record diskRecord, users []mount.Point) error {
	if record.ForReaders || !record.Block {
		return nil
	}
	writes := slices.ContainsFunc(users, func(user mount.Point) bool { return user.Access == mount.ReadWrite })
	return disk.SetReadOnly(len(users) > 0 && !writes)
}

// usersOf returns where a disk, or its file system, is mounted, apart from the staging path.
func (s *Driver) usersOf(folder stagedFolder, disk *clouddisk.Disk) ([]mount.Point, error) {
	table, err := s.Mounter.Table()
	if err != nil {
		return nil, err
	}
	node, err := os.OpenFile(disk.Path(), mounting.OpenOnly, 0)
	if err != nil {
		return nil, err
	}
	defer node.Close()
	shown, err := mount.Visible(node)
	return slices.DeleteFunc(append(table.Shows(disk.Device(), "/"), shown...), func(point mount.Point) bool {
		return point.Path == folder.system || point.Path == folder.node
	}), err
}
