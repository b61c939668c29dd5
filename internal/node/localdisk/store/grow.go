package store

import (
	"context"
	"fmt"
	"os"

	"github.com/stowage-dev/stowage/internal/device/loopdev"
	"github.com/stowage-dev/stowage/internal/node/localdisk/layout"
	"github.com/stowage-dev/stowage/internal/node/localdisk/limit"
	"github.com/stowage-dev/stowage/internal/node/localdisk/room"
)

// growImage makes an image as large as it is asked to be, if there is room for it
// beside the others. What the file has is what was given, whoever was told of it.
// What shows it, and what is in it, grow where it is mounted.
func (s *Store) growImage(turn room.Turn, volume layout.Volume, others layout.Lister) error {
	image, err := s.Base.OpenImage(volume)
	if err != nil {
		return err
	}
	defer image.Close()
	info, err := image.Stat()
	if err != nil {
		return fmt.Errorf("asking for the size of %s: %w", volume.ImagePath(), err)
	}
	if info.Size() < volume.Bytes {
		if err := s.extendBeside(turn, image, volume, others); err != nil {
			return err
		}
	}
	if err := image.Sync(); err != nil {
		return fmt.Errorf("writing the size of image %s: %w", volume.ImagePath(), err)
	}
	return nil
}

func (s *Store) extendBeside(turn room.Turn, image *os.File, volume layout.Volume, others layout.Lister) error {
	if err := s.checkImage(volume); err != nil {
		return err
	}
	// That is more than its size where a crash cut off its growth: it is its own.
	taken, err := loopdev.Taken(image)
	if err != nil {
		return err
	}
	if err := s.Rooms.CheckGrowth(turn, volume, taken, others); err != nil {
		return err
	}
	return extend(image, volume)
}

// Mend makes a volume hold again to what it was given. A directory's limit may be
// another after a crash, or since a growth was taken back. An image may have given back
// room: whoever uses it may discard blocks, and so leave holes in it, and others may
// have taken that: then it is ErrExhausted.
func (s *Store) Mend(volume layout.Volume) error {
	if volume.Image == nil {
		return limit.Set(s.Base, volume, volume.Has)
	}
	if volume.Image.Sparse {
		return nil
	}
	image, err := s.Base.OpenImage(volume)
	if err != nil {
		return err
	}
	defer image.Close()
	if whole, err := loopdev.IsAllocated(image); err != nil || whole {
		return err
	}
	info, err := image.Stat()
	if err != nil {
		return fmt.Errorf("asking for the size of %s: %w", volume.ImagePath(), err)
	}
	err = loopdev.Allocate(image, info.Size())
	if layout.IsNoRoom(err) {
		return fmt.Errorf("%w for parts of image %s that were given back and are to be kept again: make room before the volume is written there", layout.ErrExhausted, volume.ImagePath())
	}
	return err
}

// Grant gives a volume that was made the capacity that it asks for, if there is
// room for it beside the others of the node. What was granted once is held for the
// volume until its LocalVolume says so, or asks for less.
func (s *Store) Grant(ctx context.Context, volume layout.Volume, others layout.Lister) error {
	turn, err := s.Rooms.TakeTurn(ctx, volume.Path)
	if err != nil {
		return err
	}
	defer turn.End()
	if volume.Image != nil {
		return s.growImage(turn, volume, others)
	}
	if s.Rooms.Has(volume.Name, volume.Bytes) < volume.Bytes {
		if err := s.Rooms.CheckGrowth(turn, volume, volume.Used, others); err != nil {
			return err
		}
	}
	if err := limit.Set(s.Base, volume, volume.Bytes); err != nil {
		return err
	}
	s.Rooms.Grew(volume.Name, volume.Bytes)
	return nil
}
