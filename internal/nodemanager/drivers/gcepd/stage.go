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
	// From the mount on, that keeps the disk.
	defer disk.Close()
	record := recordOf(spec, disk)
	place, err := s.note(stagedDisk{Handle: spec.Name(), Staging: staging}, record)
	if err != nil {
		return err
	}
	if record.Block {
		return s.stageDevice(disk, place, record)
	}
	if err := s.mountDisk(ctx, disk, spec, place.diskFolder); err != nil {
		return err
	}
	return mounting.CheckStagedAs(s.Mounter, mounting.SystemAccess(spec.PersistentVolume), staging)
}

// stageDevice shows a disk's device in the staging directory, so that its number is kept.
func (s *Driver) stageDevice(disk *clouddisk.Disk, place stagedPlace, record diskRecord) error {
	if err := s.refuseReadOnly(disk, place.diskFolder, record); err != nil {
		return err
	}
	node, err := os.OpenFile(disk.Path(), mounting.OpenOnly, 0)
	if err != nil {
		return err
	}
	defer node.Close()
	return volumes.BindFileExactly(s.Mounter, node, place.node, mount.ReadWrite)
}

// refuseReadOnly refuses a disk that can't be written and is to be. Once it is staged, the
// driver itself may have made it read-only.
func (s *Driver) refuseReadOnly(disk *clouddisk.Disk, place diskFolder, record diskRecord) error {
	table, err := s.Mounter.Table()
	if err != nil || record.ForReaders || table.IsMountPoint(place.node) {
		return err
	}
	readOnly, err := disk.IsReadOnly()
	if err == nil && readOnly {
		err = errOnlyToRead
	}
	return err
}
