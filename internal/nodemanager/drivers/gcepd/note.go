package gcepd

import (
	"errors"
	"fmt"

	"github.com/stowage-dev/stowage/internal/device/clouddisk"
	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/nodemanager/drivers/mounting"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

// note remembers which disk is staged where, unless it is elsewhere, or something else is
// there. What is left of a disk that is gone is taken away first.
func (s *Driver) note(wanted stagedDisk, record diskRecord) (stagedPlace, error) {
	s.noting.Lock()
	defer s.noting.Unlock()
	if err := s.refuseShownElsewhere(wanted.Handle, record); err != nil {
		return stagedPlace{}, err
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
	place := placeOf(earlier.dir, wanted)
	if same {
		place.Targets = earlier.Targets
	}
	if err := s.refuseOther(place, record); err != nil || same {
		return place, err
	}
	if err := place.write(place.stagedFile(), place.stagedDisk); err != nil {
		return place, err
	}
	return place, place.write(place.recordFile(), record)
}

// refuseShownElsewhere refuses a disk that is staged for another handle. A device that
// is gone, and whose number the disk has now, is taken away: who has it would open the
// disk.
func (s *Driver) refuseShownElsewhere(handle string, wanted diskRecord) error {
	places, err := placesIn(s.Folder)
	if err != nil {
		return err
	}
	for _, each := range places {
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
			// Two disks with one number aren't both there.
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

// dropGone takes away what is left of a disk that is gone, also from pods. One that is
// there is volumes.ErrOtherVolume.
func (s *Driver) dropGone(place stagedPlace, record diskRecord) error {
	left, err := s.leftOf(place, record)
	if err != nil || len(left) == 0 {
		return err
	}
	there, err := record.Disk.IsThere()
	if err != nil {
		return err
	}
	if there {
		return fmt.Errorf("volume %s is staged at %s: %w", place.Handle, place.Staging, volumes.ErrOtherVolume)
	}
	var refused []error
	for _, point := range left {
		refused = append(refused, s.Mounter.Detach(point.Path))
	}
	return errors.Join(refused...)
}

// leftOf is what is mounted of a disk where it was staged and published. What another disk
// has there isn't.
func (s *Driver) leftOf(place stagedPlace, record diskRecord) ([]mount.Point, error) {
	table, err := s.Mounter.Table()
	if err != nil {
		return nil, err
	}
	var left []mount.Point
	for _, path := range append([]string{place.system, place.node}, place.Targets...) {
		point, mounted := table.At(path)
		if mounted && (point.Device == record.Disk.Number || record.Block && mounting.NumberAt(path) == record.Disk.Number) {
			left = append(left, point)
		}
	}
	return left, nil
}

// refuseOther is volumes.ErrOtherVolume if something else is at the staging path.
func (s *Driver) refuseOther(place stagedPlace, wanted diskRecord) error {
	table, err := s.Mounter.Table()
	if err != nil {
		return err
	}
	system, mounted := table.At(place.system)
	other := mounted && (wanted.Block || system.Device != wanted.Disk.Number)
	if table.IsMountPoint(place.node) {
		other = other || !wanted.Block || mounting.NumberAt(place.node) != wanted.Disk.Number
	}
	if other {
		return fmt.Errorf("staging volume %s at %s: %w", place.Handle, place.Staging, volumes.ErrOtherVolume)
	}
	return nil
}

// openStaged opens the disk that is staged; volumes.ErrGone if it is gone.
func openStaged(record diskRecord) (*clouddisk.Disk, error) {
	disk, err := clouddisk.DiskAt(record.Disk)
	if errors.Is(err, clouddisk.ErrNoDisk) || errors.Is(err, clouddisk.ErrOtherDisk) {
		return nil, fmt.Errorf("%w: %w", volumes.ErrGone, err)
	}
	return disk, err
}
