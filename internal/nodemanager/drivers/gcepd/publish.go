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
	place, record, err := s.find(spec.Name())
	if err != nil {
		return err
	}
	if record == nil || place.Staging != staging || record.Block != spec.IsBlock() {
		return fmt.Errorf("publishing volume %s: it isn't staged at %s: %w", spec.Name(), staging, volumes.ErrNotStaged)
	}
	disk, err := openStaged(*record)
	if err != nil {
		return fmt.Errorf("publishing volume %s: %w", spec.Name(), err)
	}
	defer disk.Close()
	if err := s.noteTarget(place, target); err != nil {
		return err
	}
	if record.Block {
		return s.publishDevice(spec, disk, place, *record, target)
	}
	return mounting.PublishStaged(s.Mounter, spec, staging, target)
}

// noteTarget notes that a disk is about to be mounted at a path, unless something else is.
func (s *Driver) noteTarget(place stagedPlace, target string) error {
	table, err := s.Mounter.Table()
	if err != nil || table.IsMountPoint(target) || slices.Contains(place.Targets, target) {
		return err
	}
	place.Targets = append(slices.Clone(place.Targets), target)
	return place.write(place.stagedFile(), place.stagedDisk)
}

func (s *Driver) publishDevice(spec volumes.Spec, disk *clouddisk.Disk, place stagedPlace, record diskRecord, target string) error {
	table, err := s.Mounter.Table()
	if err != nil {
		return err
	}
	if !table.IsMountPoint(place.node) {
		return fmt.Errorf("publishing volume %s: its device isn't staged at %s: %w", spec.Name(), place.Staging, volumes.ErrNotStaged)
	}
	node, err := os.OpenFile(disk.Path(), mounting.OpenOnly, 0)
	if err != nil {
		return err
	}
	defer node.Close()
	users, err := s.usersOf(place, disk)
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
	return s.protect(place, record, disk)
}

// protect keeps a device from being written while no pod that has it may.
func (s *Driver) protect(place stagedPlace, record diskRecord, disk *clouddisk.Disk) error {
	users, err := s.usersOf(place, disk)
	if err != nil {
		return err
	}
	return protectDisk(disk, record, users)
}

// protectDisk keeps a device from being written while no pod that has it may, as far as the
// attachment lets it be written at all. Of a file system, the mount says so.
func protectDisk(disk *clouddisk.Disk, record diskRecord, users []mount.Point) error {
	if record.ForReaders || !record.Block {
		return nil
	}
	writes := slices.ContainsFunc(users, func(user mount.Point) bool { return user.Access == mount.ReadWrite })
	return disk.SetReadOnly(len(users) > 0 && !writes)
}

// usersOf is where a disk, or the file system on it, is mounted but where it is staged.
func (s *Driver) usersOf(place stagedPlace, disk *clouddisk.Disk) ([]mount.Point, error) {
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
		return point.Path == place.system || point.Path == place.node
	}), err
}
