package store

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/stowage-dev/stowage/internal/mount/safepath"
	"github.com/stowage-dev/stowage/internal/node/localdisk/identity"
	"github.com/stowage-dev/stowage/internal/node/localdisk/layout"
)

// AdoptFound adopts a volume on its accepted disk for a NodeVolume that was created again.
// It makes nothing: a missing volume is ErrLost.
func (s *Store) AdoptFound(ctx context.Context, volume layout.Volume, others layout.Lister) error {
	if err := s.Confirm(volume); err != nil {
		return err
	}
	dir, err := s.Base.Open(volume.Directory())
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%w: %w", layout.ErrLost, err)
	}
	if err != nil {
		return err
	}
	defer dir.Close()
	there, wanted := layout.ReadRecord(dir, volume.Name), layout.RecordOf(volume)
	if there != nil && (there.Claim.UID != wanted.Claim.UID || there.Layout != wanted.Layout) {
		return fmt.Errorf("%w: the owner record of %s names the claim with uid %s and layout %s, and not uid %s and layout %s: "+
			"delete this NodeVolume, and correct the PersistentVolume", layout.ErrInvalid, volume.Directory(),
			there.Claim.UID, there.Layout, wanted.Claim.UID, wanted.Layout)
	}
	return s.adopt(ctx, volume, others)
}

// adopt checks the disk of a volume that exists, and syncs it: a crash may have prevented that.
// The request for an image may have grown since.
func (s *Store) adopt(ctx context.Context, volume layout.Volume, others layout.Lister) error {
	folder, err := s.Disks.FolderOf(volume)
	if err != nil {
		return err
	}
	defer folder.Close()
	if err := errors.Join(safepath.SyncDir(folder), s.Rooms.Recount(ctx, volume.Path)); err != nil || volume.Image == nil {
		return err
	}
	return s.Grant(ctx, volume, others)
}

// Confirm checks that a volume which was made exists. It is ErrLost where the disk is another,
// or doesn't have the volume. Another error, such as a disk that can't be read, leaves that open.
func (s *Store) Confirm(volume layout.Volume) error {
	err := s.Disks.CheckDisk(volume)
	if errors.Is(err, layout.ErrNoDisk) || errors.Is(err, identity.ErrForeignDisk) {
		return fmt.Errorf("%w: %s: %w", layout.ErrLost, volume.Directory(), err)
	}
	if err != nil {
		return err
	}
	exists, err := s.Base.Exists(volume)
	if err != nil || exists {
		return err
	}
	return fmt.Errorf("%w: %s isn't on the disk: mount the disk again, or restore it; Stowage doesn't make it again",
		s.lossOf(volume), volume.Directory())
}

// lossOf returns ErrImageMissing where only the image is missing, else ErrLost.
func (s *Store) lossOf(volume layout.Volume) error {
	dir, err := s.Base.Open(volume.Directory())
	if err != nil || volume.Image == nil {
		return layout.ErrLost
	}
	dir.Close()
	return layout.ErrImageMissing
}
