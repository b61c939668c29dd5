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

// copySource fills a draft with the content of its source, which isn't removed during the copy.
func (s *Store) copySource(ctx context.Context, begun *draft, volume layout.Volume) error {
	source := *volume.Source
	end, err := s.copies.begin(source.Directory(), func() error { return s.checkSource(source) })
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

// checkSource returns an error where there is nothing to copy. A lost source may come back; one
// that is being removed doesn't.
func (s *Store) checkSource(source layout.Volume) error {
	exists, err := s.Base.Exists(source)
	switch {
	case err != nil || exists:
		return err
	case source.Provisioned:
		return fmt.Errorf("%w: the volume isn't on it: mount the disk", layout.ErrNoDisk)
	default:
		return fmt.Errorf("%w: the data that it was to begin with is gone: delete what requested it", layout.ErrInvalid)
	}
}

// copyDirectory copies a directory that is mounted nowhere.
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
	// A hostPath mount doesn't call IsCopied.
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

// copyImage copies the image of a source, and extends the copy to the requested size. Where the
// disk can share blocks, that takes no time, and pods may use the source. Elsewhere the source
// must be unused.
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

// copyUnused copies an image that has no loop device, and is reserved during the copy.
func copyUnused(ctx context.Context, to, from *os.File, volume layout.Volume) error {
	err := duplicate.Share(to, from)
	if !errors.Is(err, duplicate.ErrCannotShare) {
		return err
	}
	// Room first: a disk that is too small isn't filled in vain.
	if err := extend(to, volume); err != nil {
		return err
	}
	return duplicate.File(ctx, to, from)
}

// copyUsed copies an image while pods write it. The copy is as after a loss of power right after
// a sync, which file systems with a journal survive.
func copyUsed(to, from *os.File) error {
	err := duplicate.Share(to, from)
	if errors.Is(err, duplicate.ErrCannotShare) {
		return fmt.Errorf("%w: its disk can't share blocks between files, so it is copied when no pod uses it", layout.ErrInUse)
	}
	if err != nil {
		return err
	}
	// Sharing works, so a flush is worth its time. The second copy has what it wrote.
	if err := loopdev.Flush(from); err != nil {
		return err
	}
	if err := to.Truncate(0); err != nil {
		return fmt.Errorf("emptying image %s: %w", to.Name(), err)
	}
	return duplicate.Share(to, from)
}
