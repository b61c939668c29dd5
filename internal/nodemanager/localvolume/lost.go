package localvolume

import (
	"errors"
	"fmt"
)

// confirm makes sure that a volume which was made is there. It is errLost where its
// disk is another, or doesn't have it. A disk that can't be asked now says neither.
func (s *Store) confirm(volume Volume) error {
	err := s.Disks.checkDisk(volume)
	if errors.Is(err, errNoDisk) || errors.Is(err, errForeignDisk) {
		return fmt.Errorf("%w: %s: %w", errLost, volume.directory(), err)
	}
	if err != nil {
		return err
	}
	exists, err := s.Base.Exists(volume)
	if err != nil || exists {
		return err
	}
	return fmt.Errorf("%w: %s isn't on the disk: mount the disk again, or restore it; Stowage doesn't make it anew",
		s.whatIsLost(volume), volume.directory())
}

// whatIsLost tells an image that is missing from a whole volume that is.
func (s *Store) whatIsLost(volume Volume) error {
	dir, err := s.Base.open(volume.directory())
	if err != nil || volume.Image == nil {
		return errLost
	}
	dir.Close()
	return errImageMissing
}
