package snapshots

import (
	"cmp"
	"strconv"

	"google.golang.org/api/compute/v1"

	"github.com/stowage-dev/stowage/internal/gcemock/disks"
	"github.com/stowage-dev/stowage/internal/gcemock/engine"
	"github.com/stowage-dev/stowage/internal/gcemock/state"
	"github.com/stowage-dev/stowage/internal/gcemock/wire"
)

// findSnapshotSource finds the disk or instant snapshot that a snapshot is made from.
func findSnapshotSource(s *engine.Engine, row *compute.Snapshot, _ bool) (disks.Source, error) {
	path := row.SourceInstantSnapshot
	if path == "" {
		disk, err := s.FindReadyDisk(row.SourceDisk)
		row.SourceDiskId, row.DiskSizeGb, row.SnapshotEncryptionKey = strconv.FormatUint(disk.Id, 10), disk.SizeGb, disk.DiskEncryptionKey
		return disks.Source{Path: disk.SelfLink, ID: disk.Id}, cmp.Or(err, s.CheckKey(disk.DiskEncryptionKey))
	}
	instant, found := s.Instants.Get(path)
	switch {
	case row.SourceDisk != "":
		return disks.Source{}, wire.Invalid("resource", row.Name, "A snapshot has one source.")
	case !found:
		return disks.Source{}, wire.NotFound(path)
	case instant.Status != state.StatusReady:
		return disks.Source{}, wire.NotReady(path)
	}
	row.SourceInstantSnapshotId = strconv.FormatUint(instant.Id, 10)
	row.SourceDisk, row.SourceDiskId = instant.SourceDisk, instant.SourceDiskId
	row.DiskSizeGb = instant.DiskSizeGb
	return disks.Source{Path: path, ID: instant.Id}, nil
}

// findImageSource finds the disk, snapshot or image that an image is made from.
func findImageSource(s *engine.Engine, row *compute.Image, isForced bool) (disks.Source, error) {
	form := compute.Disk{
		Name: row.Name, SizeGb: row.DiskSizeGb, SourceSnapshot: row.SourceSnapshot, SourceImage: row.SourceImage, SourceDisk: row.SourceDisk,
	}
	if disk, found := s.Disks.Get(row.SourceDisk); found {
		// An image can be made of a disk of any type, anywhere.
		form.Type, form.Zone, form.Region, form.SelfLink = disk.Type, disk.Zone, disk.Region, disk.SelfLink
		if err := s.RefuseUsers(disk.SelfLink); err != nil && !isForced {
			return disks.Source{}, err
		}
	}
	from, err := disks.SettleSource(s, &form)
	if err != nil {
		return disks.Source{}, err
	}
	if from.IsNone() {
		return disks.Source{}, wire.Invalid("resource", row.Name, "An image needs a source disk, snapshot or image.")
	}
	row.DiskSizeGb, row.SourceImage = form.SizeGb, form.SourceImage
	row.SourceDiskId, row.SourceSnapshotId, row.SourceImageId = form.SourceDiskId, form.SourceSnapshotId, form.SourceImageId
	return from, nil
}

// findInstantSource finds the disk of the same zone that an instant snapshot is made from.
func findInstantSource(s *engine.Engine, row *compute.InstantSnapshot, _ bool) (disks.Source, error) {
	disk, err := s.FindReadyDisk(row.SourceDisk)
	if err != nil {
		return disks.Source{}, err
	}
	if disk.Zone != row.Zone {
		return disks.Source{}, wire.Invalid("resource.sourceDisk", row.SourceDisk, "The disk is in another zone.")
	}
	row.SourceDiskId, row.DiskSizeGb = strconv.FormatUint(disk.Id, 10), disk.SizeGb
	return disks.Source{Path: disk.SelfLink, ID: disk.Id}, nil
}
