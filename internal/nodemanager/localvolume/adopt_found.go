package localvolume

import (
	"context"
	"errors"
	"fmt"
	"os"
)

// adoptFound takes a volume that is on its accepted disk for that of a LocalVolume which
// was made again. Where it isn't there, nothing is made.
func (s *Store) adoptFound(ctx context.Context, volume Volume, others Lister) error {
	if err := s.confirm(volume); err != nil {
		return err
	}
	dir, err := s.Base.open(volume.directory())
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%w: %w", errLost, err)
	}
	if err != nil {
		return err
	}
	defer dir.Close()
	there, wanted := readRecord(dir, volume.Name), recordOf(volume)
	if there != nil && (there.Claim.UID != wanted.Claim.UID || there.Layout != wanted.Layout) {
		return fmt.Errorf("%w: the owner record of %s names the claim with uid %s and layout %s, and not uid %s and layout %s: "+
			"delete this LocalVolume, and correct the PersistentVolume", errInvalid, volume.directory(),
			there.Claim.UID, there.Layout, wanted.Claim.UID, wanted.Layout)
	}
	return s.adopt(ctx, volume, others)
}
