package localvolume

import (
	"context"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/mount"
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

// isNoDirectory reports whether an error says that there is no directory of a name.
func isNoDirectory(err error) bool {
	return errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, mount.ErrOutside)
}

// adopt has a found volume adopted, on the disk that was accepted.
func (r *Reconciler) adopt(ctx context.Context, volume *stowagev1alpha1.LocalVolume) error {
	there, err := r.finder.onAcceptedDisk(ctx, volume)
	if err != nil {
		return err
	}
	return r.Store.adoptFound(ctx, there, othersOf(ctx, r.Client, r.NodeName, volume.Name))
}
