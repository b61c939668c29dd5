package gcepd

import (
	"context"
	"os"

	"github.com/stowage-dev/stowage/internal/device/clouddisk"
	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/nodemanager/drivers/mounting"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

// Stage makes a disk usable on the node.
func (s *Driver) Stage(ctx context.Context, spec volumes.Spec, staging string) error {
	disk, err := s.open(ctx, spec)
	if err != nil {
		return err
	}
	// Once the disk is mounted, the mount keeps it open.
	defer disk.Close()
	record := recordOf(spec, disk)
	folder, err := s.recordStaged(stagedDisk{Handle: spec.Name(), Staging: staging}, record)
	if err != nil {
		return err
	}
	if record.Block {
		return s.stageDevice(disk, folder, record)
	}
	if err := s.mountDisk(ctx, disk, spec, folder.diskFolder); err != nil {
		return err
	}
	return mounting.CheckStagedAs(s.Mounter, mounting.SystemAccess(spec.PersistentVolume), staging)
}

// stageDevice binds a disk's device in the staging directory, so that the kernel keeps its
// number.
func (s *Driver) stageDevice(disk *clouddisk.Disk, folder stagedFolder, record diskRecord) error {
	if err := s.refuseReadOnly(disk, folder.diskFolder, record); err != nil {
		return err
	}
	node, err := os.OpenFile(disk.Path(), mounting.OpenOnly, 0)
	if err != nil {
		return err
	}
	defer node.Close()
	return volumes.BindFileExactly(s.Mounter, node, folder.node, mount.ReadWrite)
}

// refuseReadOnly refuses a disk that is to be written and can't be. It skips a staged one: the
// driver itself may have made that read-only.
func (s *Driver) refuseReadOnly(disk *clouddisk.Disk, folder diskFolder, record diskRecord) error {
	table, err := s.Mounter.Table()
	if err != nil || record.ForReaders || table.IsMountPoint(folder.node) {
		return err
	}
	readOnly, err := disk.IsReadOnly()
	if err == nil && readOnly {
		err = errOnlyToRead
	}
	return err
}
