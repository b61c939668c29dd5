package store

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/stowage-dev/stowage/internal/device"
	"github.com/stowage-dev/stowage/internal/device/loopdev"
	"github.com/stowage-dev/stowage/internal/duplicate"
	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/node/localdisk/layout"
	"github.com/stowage-dev/stowage/internal/node/localdisk/limit"
)

// copySource fills a draft with what its source holds, which stays until then.
func (s *Store) copySource(ctx context.Context, begun *draft, volume layout.Volume) error {
	source := *volume.Source
	end, err := s.copies.begin(source.Directory(), func() error { return s.mustBeThere(source) })
	if err == nil {
		defer end()
		if volume.Image != nil {
			err = s.copyImage(ctx, begun.image, volume)
		} else {
			err = s.copyDirectory(ctx, begun.dir, volume)
		}
	}
	if err != nil {
		return fmt.Errorf("copying volume %s: %w", source.Name, err)
	}
	return nil
}

// mustBeThere is an error if there is nothing to copy. What is being removed doesn't
// come back; what is lost may.
func (s *Store) mustBeThere(source layout.Volume) error {
	exists, err := s.Base.Exists(source)
	switch {
	case err != nil || exists:
		return err
	case source.Provisioned:
		return fmt.Errorf("%w: the volume isn't on it: mount the disk", layout.ErrNoDisk)
	default:
		return fmt.Errorf("%w: the data that it was to begin with is gone: create the claim anew, without dataSource", layout.ErrInvalid)
	}
}

// copyDirectory copies a directory that nobody sees.
func (s *Store) copyDirectory(ctx context.Context, to *os.File, volume layout.Volume) error {
	from, err := s.Base.Open(volume.Source.Directory())
	if err != nil {
		return err
	}
	defer from.Close()
	if err := refuseVisible(from); err != nil {
		return err
	}
	if err := duplicate.Tree(ctx, to, from); err != nil {
		return err
	}
	// Whoever mounts volumes by their path doesn't ask whether they are being copied.
	if err := refuseVisible(from); err != nil {
		return err
	}
	return limit.SetOnCopy(to, volume)
}

func refuseVisible(dir *os.File) error {
	points, err := mount.Visible(dir)
	if err == nil && len(points) > 0 {
		err = fmt.Errorf("%w: it is mounted at %s, and is copied when no pod uses it", layout.ErrInUse, points[0].Path)
	}
	return err
}

// copyImage makes an image hold what that of its source does, and as large as it is
// asked to be. Where the disk can share blocks that needs neither time nor an image
// that nobody uses; elsewhere nobody may write it meanwhile.
func (s *Store) copyImage(ctx context.Context, to *os.File, volume layout.Volume) error {
	from, err := s.Base.OpenImage(*volume.Source)
	if err != nil {
		return err
	}
	defer from.Close()
	if err := refuseLarger(from, volume); err != nil {
		return err
	}
	reserved, err := loopdev.Reserve(ctx, from)
	switch {
	case err == nil:
		defer reserved.Close()
		err = copyUnused(ctx, to, from, volume)
	case errors.Is(err, device.ErrAttached):
		err = copyUsed(to, from)
	case errors.Is(err, device.ErrReserved):
		err = fmt.Errorf("%w: %w", layout.ErrInUse, err)
	}
	if err != nil {
		return err
	}
	return extend(to, volume)
}

// copyUnused copies an image that has no loop device, and gets none meanwhile.
func copyUnused(ctx context.Context, to, from *os.File, volume layout.Volume) error {
	err := duplicate.Share(to, from)
	if !errors.Is(err, duplicate.ErrCannotShare) {
		return err
	}
	// Its room first: a disk that is too small needn't be filled to know.
	if err := extend(to, volume); err != nil {
		return err
	}
	return duplicate.File(ctx, to, from)
}

// copyUsed copies an image while pods write it. The copy is as if the power had failed
// at that moment, after all that was written before was written to the disk: what
// file systems with a journal are made for.
func copyUsed(to, from *os.File) error {
	err := duplicate.Share(to, from)
	if errors.Is(err, duplicate.ErrCannotShare) {
		return fmt.Errorf("%w: its disk can't share blocks between files, so it is copied when no pod uses it", layout.ErrInUse)
	}
	if err != nil {
		return err
	}
	// Only now is it known that this isn't in vain.
	if err := loopdev.Flush(from); err != nil {
		return err
	}
	if err := to.Truncate(0); err != nil {
		return fmt.Errorf("emptying image %s: %w", to.Name(), err)
	}
	return duplicate.Share(to, from)
}
