package store

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/mount/filetree"
	"github.com/stowage-dev/stowage/internal/mount/safepath"
	"github.com/stowage-dev/stowage/internal/node/localdisk/identity"
	"github.com/stowage-dev/stowage/internal/node/localdisk/layout"
	"github.com/stowage-dev/stowage/internal/node/localdisk/limit"
)

// openUnused opens the folder of a volume that is to be removed; nil where there is nothing to
// remove. It is ErrInUse if the volume is in use now.
func (s *Store) openUnused(ctx context.Context, volume layout.Volume) (*os.File, error) {
	folder, err := s.openToRemove(volume)
	if folder == nil || err != nil {
		return nil, err
	}
	release, err := refuseInUse(ctx, folder, volume)
	if err != nil {
		folder.Close()
		return nil, err
	}
	release()
	return folder, nil
}

// Remove removes a volume with its data. It is ErrInUse while the volume is mounted anywhere, or
// has a loop device. A missing volume is a success. But where its folder is missing, and the
// volume was provisioned or the folder accepted, it is ErrNoDisk. At the end of the slice it is
// filetree.ErrUnfinished: the next call continues, in this process or another.
func (s *Store) Remove(ctx context.Context, volume layout.Volume) error {
	folder, err := s.openUnused(ctx, volume)
	if folder == nil || err != nil {
		return err
	}
	defer folder.Close()
	until := s.until()
	deleting, err := s.retire(folder, volume)
	if errors.Is(err, os.ErrExist) {
		// A crash left an earlier volume of this name half removed.
		if err = filetree.RemoveRetired(ctx, folder, volume.Name, until); err == nil {
			deleting, err = s.retire(folder, volume)
		}
	}
	if err != nil {
		return err
	}
	defer deleting.Close()
	// A hostPath mount may have come before the move. None can come after it.
	release, err := refuseInUse(ctx, deleting, volume)
	if err != nil {
		return err
	}
	defer release()
	if err := limit.Remove(deleting, volume); err != nil {
		return err
	}
	if err := filetree.RemoveTreeUntil(ctx, deleting, volume.Name, until); err != nil {
		return err
	}
	s.Rooms.Forget(volume.Name)
	return filetree.RemoveUnfinishedUntil(ctx, folder, volume.Name, until)
}

// openToRemove opens the folder of a volume, if it is on the right disk; nil where there is
// nothing to remove.
func (s *Store) openToRemove(volume layout.Volume) (*os.File, error) {
	folder, err := s.Base.Open(volume.Path)
	// On an accepted disk that is missing, a crash may have left half of a volume.
	if errors.Is(err, os.ErrNotExist) && !volume.Provisioned && volume.Disk == nil {
		return nil, nil //nolint:nilnil // nothing is an answer
	}
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%w: folder %s is missing: mount the disk again, or create the folder if the data is gone for good", layout.ErrNoDisk, volume.Path)
	}
	if err != nil {
		return nil, err
	}
	switch {
	case volume.Disk != nil:
		err = identity.CheckIdentity(folder, volume.Disk)
	case volume.Provisioned:
		err = refuseUnknown(folder, volume)
	}
	if err != nil {
		folder.Close()
		return nil, err
	}
	return folder, nil
}

// refuseUnknown returns an error where a volume isn't in its folder, and that may be a mere mount
// point. No disk was accepted there, and none left its marker.
func refuseUnknown(folder *os.File, volume layout.Volume) error {
	there, err := safepath.OpenAt(folder, volume.Name)
	if err == nil {
		return there.Close()
	}
	if !errors.Is(err, os.ErrNotExist) {
		return err
	}
	marker, err := identity.ReadMarker(folder)
	if marker != nil || err != nil {
		return err
	}
	return fmt.Errorf("%w: the volume isn't in %s, which isn't known to be that of its disk: mount the disk there", layout.ErrNoDisk, volume.Path)
}

// retire moves a volume to where it is removed, unless it is being copied.
func (s *Store) retire(folder *os.File, volume layout.Volume) (deleting *os.File, err error) {
	err = s.copies.unless(volume.Directory(), func() (err error) {
		deleting, err = filetree.Retire(folder, volume.Name)
		return err
	})
	return deleting, err
}

// refuseInUse is ErrInUse if a volume is mounted somewhere, holds a mount, or has a loop device.
// It gets no loop device until release is called.
func refuseInUse(ctx context.Context, folder *os.File, volume layout.Volume) (release func(), err error) {
	dir, err := safepath.OpenAt(folder, volume.Name)
	if errors.Is(err, os.ErrNotExist) {
		return func() {}, nil
	}
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	points, err := mount.Visible(dir)
	if err != nil {
		return nil, err
	}
	if len(points) > 0 {
		return nil, fmt.Errorf("%w: it is mounted at %s", layout.ErrInUse, points[0].Path)
	}
	if volume.Image == nil {
		return func() {}, nil
	}
	return reserveImage(ctx, dir)
}

// CheckRemovable returns an error if nothing of a volume can be removed now. Then no removal
// begins, and the order can still be withdrawn.
func (s *Store) CheckRemovable(ctx context.Context, volume layout.Volume) error {
	folder, err := s.openUnused(ctx, volume)
	if folder == nil || err != nil {
		return err
	}
	folder.Close()
	return s.copies.unless(volume.Directory(), func() error { return nil })
}
