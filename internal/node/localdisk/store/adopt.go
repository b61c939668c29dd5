package store

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/stowage-dev/stowage/internal/node/localdisk/layout"
)

// AdoptFound takes a volume that is on its accepted disk for that of a NodeVolume which
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
			"delete this NodeVolume, and correct the PersistentVolume", layout.ErrInvalid, volume.Directory(),
			there.Claim.UID, there.Layout, wanted.Claim.UID, wanted.Layout)
	}
	return s.adopt(ctx, volume, others)
}
