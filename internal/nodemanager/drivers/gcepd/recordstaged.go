package gcepd

import (
	"errors"
	"fmt"

	"github.com/stowage-dev/stowage/internal/device/clouddisk"
	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/nodemanager/drivers/mounting"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

// recordStaged records which disk is staged where, unless it is staged elsewhere, or something
// else is there. It first detaches what is left of a disk that is gone.
func (s *Driver) recordStaged(wanted stagedDisk, record diskRecord) (stagedFolder, error) {
	s.recording.Lock()
	defer s.recording.Unlock()
	if err := s.refuseShownElsewhere(wanted.Handle, record); err != nil {
		return stagedFolder{}, err
	}
	earlier, known, err := s.find(wanted.Handle)
	if err != nil {
		return earlier, err
	}
	same := known != nil && known.isSame(record) && earlier.Staging == wanted.Staging
	if known != nil && !same {
		if err := s.dropGone(earlier, *known); err != nil {
			return earlier, err
		}
	}
	folder := folderOf(earlier.dir, wanted)
	if same {
		folder.Targets = earlier.Targets
	}
	if err := s.refuseOther(folder, record); err != nil || same {
		return folder, err
	}
	if err := folder.write(folder.stagedFile(), folder.stagedDisk); err != nil {
		return folder, err
	}
	return folder, folder.write(folder.recordFile(), record)
}

// refuseShownElsewhere refuses a disk that is staged for another handle. It detaches a device
// that is gone and whose number this disk has now: through it, its pod would open this disk.
func (s *Driver) refuseShownElsewhere(handle string, wanted diskRecord) error {
	folders, err := foldersIn(s.Folder)
	if err != nil {
		return err
	}
	for _, each := range folders {
		other, record, err := readStaged(each.dir)
		if err != nil {
			return err
		}
		switch {
		case record == nil || other.dir == s.dirOf(handle):
		case record.Disk == wanted.Disk:
			return fmt.Errorf("the disk is staged for volume %s, which is another one for the same storage: use one of the two: %w",
				other.Handle, mount.ErrMounted)
		case record.Block && record.Disk.Number == wanted.Disk.Number:
			// Two disks can't have one number at once.
			there, err := record.Disk.IsThere()
			if err == nil && !there {
				err = s.dropGone(other, *record)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// dropGone detaches what is left of a disk that is gone, also from pods. It returns
// volumes.ErrOtherVolume if the disk is there.
func (s *Driver) dropGone(folder stagedFolder, record diskRecord) error {
	left, err := s.leftOf(folder, record)
	if err != nil || len(left) == 0 {
		return err
	}
	there, err := record.Disk.IsThere()
	if err != nil {
		return err
	}
	if there {
		return fmt.Errorf("volume %s is staged at %s: %w", folder.Handle, folder.Staging, volumes.ErrOtherVolume)
	}
	var refused []error
	for _, point := range left {
		refused = append(refused, s.Mounter.Detach(point.Path))
	}
	return errors.Join(refused...)
}

// leftOf returns what is still mounted of a disk where it was staged and published. Mounts of
// other disks there don't count.
func (s *Driver) leftOf(folder stagedFolder, record diskRecord) ([]mount.Point, error) {
	table, err := s.Mounter.Table()
	if err != nil {
		return nil, err
	}
	var left []mount.Point
	for _, path := range append([]string{folder.system, folder.node}, folder.Targets...) {
		point, mounted := table.At(path)
		if mounted && (point.Device == record.Disk.Number || record.Block && mounting.NumberAt(path) == record.Disk.Number) {
			left = append(left, point)
		}
	}
	return left, nil
}

// refuseOther returns volumes.ErrOtherVolume if something else is at the staging path.
func (s *Driver) refuseOther(folder stagedFolder, wanted diskRecord) error {
	table, err := s.Mounter.Table()
	if err != nil {
		return err
	}
	system, mounted := table.At(folder.system)
	other := mounted && (wanted.Block || system.Device != wanted.Disk.Number)
	if table.IsMountPoint(folder.node) {
		other = other || !wanted.Block || mounting.NumberAt(folder.node) != wanted.Disk.Number
	}
	if other {
		return fmt.Errorf("staging volume %s at %s: %w", folder.Handle, folder.Staging, volumes.ErrOtherVolume)
	}
	return nil
}

// openStaged opens the staged disk; volumes.ErrGone if it is gone.
func openStaged(record diskRecord) (*clouddisk.Disk, error) {
	disk, err := clouddisk.DiskAt(record.Disk)
	if errors.Is(err, clouddisk.ErrNoDisk) || errors.Is(err, clouddisk.ErrOtherDisk) {
		return nil, fmt.Errorf("%w: %w", volumes.ErrGone, err)
	}
	return disk, err
}
