package store

import (
	"errors"
	"fmt"

	"github.com/stowage-dev/stowage/internal/node/localdisk/identity"
	"github.com/stowage-dev/stowage/internal/node/localdisk/layout"
)

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
