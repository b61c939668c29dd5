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

// AdoptFound takes a volume that is on its accepted disk for that of a LocalVolume which
// was made again. Where it isn't there, nothing is made.
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
			"delete this LocalVolume, and correct the PersistentVolume", layout.ErrInvalid, volume.Directory(),
			there.Claim.UID, there.Layout, wanted.Claim.UID, wanted.Layout)
	}
	return s.adopt(ctx, volume, others)
}

// adopt makes sure that a volume which is there lies on its disk, and survives a loss
// of power: the crash that it comes from may have been before that was done. An image
// may have been asked to grow since.
func (s *Store) adopt(ctx context.Context, volume layout.Volume, others layout.Lister) error {
	folder, err := s.Disks.FolderOf(volume)
	if err != nil {
		return err
	}
	defer folder.Close()
	if err := safepath.SyncDir(folder); err != nil || volume.Image == nil {
		return err
	}
	return s.Grant(ctx, volume, others)
}

// Confirm makes sure that a volume which was made is there. It is ErrLost where its
// disk is another, or doesn't have it. A disk that can't be asked now says neither.
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
	return fmt.Errorf("%w: %s isn't on the disk: mount the disk again, or restore it; Stowage doesn't make it anew",
		s.whatIsLost(volume), volume.Directory())
}

// whatIsLost tells an image that is missing from a whole volume that is.
func (s *Store) whatIsLost(volume layout.Volume) error {
	dir, err := s.Base.Open(volume.Directory())
	if err != nil || volume.Image == nil {
		return layout.ErrLost
	}
	dir.Close()
	return layout.ErrImageMissing
}
