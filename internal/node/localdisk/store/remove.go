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

// openUnused opens the folder of a volume that is to be removed, and refuses one that is in
// use now; nil where there is nothing to remove.
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

// Remove removes a volume with its data. It refuses while the volume is mounted
// anywhere, or a loop device shows it. A volume that isn't there is a success, unless
// its whole folder is missing although the volume was provisioned, or the folder
// accepted. One that has more files than there is time for is filetree.ErrUnfinished: the next
// call goes on, in this process or another.
func (s *Store) Remove(ctx context.Context, volume layout.Volume) error {
	folder, err := s.openUnused(ctx, volume)
	if folder == nil || err != nil {
		return err
	}
	defer folder.Close()
	until := s.until()
	deleting, err := s.retire(folder, volume)
	if errors.Is(err, os.ErrExist) {
		// An earlier volume of this name was half removed when a crash came.
		if err = filetree.RemoveRetired(ctx, folder, volume.Name, until); err == nil {
			deleting, err = s.retire(folder, volume)
		}
	}
	if err != nil {
		return err
	}
	defer deleting.Close()
	// Whoever mounts volumes by their path may have been quicker than the move.
	// From now on nobody can, and this answer holds.
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

// openToRemove opens the folder that a volume is removed from; nil where there is nothing to
// remove.
func (s *Store) openToRemove(volume layout.Volume) (*os.File, error) {
	folder, err := s.Base.Open(volume.Path)
	// On a disk that was accepted, and isn't there, a crash may have left half of it.
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

// refuseUnknown is an error if a volume isn't in a folder that may be a mere mount point: no
// disk was accepted there, and none left its marker.
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

// refuseInUse is an error if a volume in a folder is mounted somewhere or holds a
// mount, or if a loop device shows its image. None will until release is called.
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

// CheckRemovable returns why nothing of a volume can be removed now: then nothing is
// begun, and the order can still be taken back.
func (s *Store) CheckRemovable(ctx context.Context, volume layout.Volume) error {
	folder, err := s.openUnused(ctx, volume)
	if folder == nil || err != nil {
		return err
	}
	folder.Close()
	return s.copies.unless(volume.Directory(), func() error { return nil })
}
