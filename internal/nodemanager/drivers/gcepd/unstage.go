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

// Unpublish takes a disk away from a pod. What is in use stays, unless the disk is gone:
// then nothing can be written to it any more.
func (s *Driver) Unpublish(_ context.Context, handle, target string) error {
	place, record, err := s.find(handle)
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
		if err := s.protect(place, *record, disk); err != nil {
			return err
		}
	}
	if err := volumes.RemovePoint(target); err != nil || !slices.Contains(place.Targets, target) {
		return err
	}
	place.Targets = slices.DeleteFunc(slices.Clone(place.Targets), func(each string) bool { return each == target })
	return place.write(place.stagedFile(), place.stagedDisk)
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

// unmountBelow unmounts all at a path or below it, and detaches what is in use of a disk
// that is gone.
func (s *Driver) unmountBelow(path string, gone bool) error {
	err := mount.UnmountBelow(s.Mounter, path)
	if err == nil || !gone {
		return err
	}
	return mount.UnmountBelow(mounting.Detaching{Mounter: s.Mounter}, path)
}

// Unstage takes away all that Stage made: it is a success when nobody has the disk any
// more, in whatever mount namespace.
func (s *Driver) Unstage(ctx context.Context, handle, staging string) error {
	place, record, err := s.find(handle)
	if err != nil {
		return err
	}
	elsewhere := place.Staging != "" && place.Staging != staging
	if record == nil || elsewhere {
		err = s.clear(staging)
	} else {
		place = placeOf(place.dir, stagedDisk{Handle: handle, Staging: staging, Targets: place.Targets})
		err = s.removeStaged(ctx, place, *record)
	}
	if err != nil {
		return fmt.Errorf("unstaging volume %s: %w", handle, err)
	}
	if elsewhere {
		return nil
	}
	return place.forget(place.stagedFile())
}

// clear unmounts what is at a staging path that nothing is known of.
func (s *Driver) clear(staging string) error {
	table, err := s.Mounter.Table()
	if err != nil {
		return err
	}
	place := placeOf("", stagedDisk{Staging: staging})
	if staged, mounted := table.At(staging); mounted {
		if err := mounting.RefuseUsed(table, staged); err != nil {
			return err
		}
		return mount.UnmountBelow(s.Mounter, staging)
	}
	return volumes.UnbindFile(s.Mounter, place.node)
}

// removeStaged unmounts a disk that no pod has any more, and proves that nothing of it is left.
func (s *Driver) removeStaged(ctx context.Context, place stagedPlace, record diskRecord) error {
	disk, err := s.diskOf(&record)
	if err != nil {
		return err
	}
	users, err := s.leftOf(stagedPlace{stagedDisk: place.stagedDisk}, record)
	if disk != nil {
		defer disk.Close()
		users, err = s.usersOf(place, disk)
	}
	if err == nil && len(users) > 0 {
		err = fmt.Errorf("%w: the disk is mounted at %s", volumes.ErrInUse, users[0].Path)
	}
	if err == nil && disk != nil {
		// No half-made file system leaves this node: nobody else knows that it isn't data.
		_, err = s.finishHalf(ctx, disk, place.diskFolder)
	}
	if err == nil && disk != nil {
		err = protectDisk(disk, record, nil)
	}
	if err != nil {
		return err
	}
	if err := s.unmountBelow(place.Staging, disk == nil); err != nil {
		return err
	}
	if disk != nil {
		if err := refuseTaken(disk); err != nil {
			return err
		}
	}
	return volumes.RemovePoint(place.node)
}

// refuseTaken is an error if a disk is mounted where the agent doesn't see it.
func refuseTaken(disk *clouddisk.Disk) error {
	taken, err := disk.IsTaken()
	if err == nil && taken {
		err = fmt.Errorf("the volume's disk %s is still mounted, in a place or a mount namespace that isn't the agent's: "+
			"it isn't let go before it is unmounted there: %w", disk.Path(), mount.ErrMounted)
	}
	return err
}
