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

// growImage extends an image to the requested size, if there is room. The size of the file is
// what is allocated, even before the status has it. The loop device and the file system grow
// where the image is mounted.
func (s *Store) growImage(lock room.DiskLock, volume layout.Volume, others layout.Lister) error {
	image, err := s.Base.OpenImage(volume)
	if err != nil {
		return err
	}
	defer image.Close()
	size, err := sizeOf(image, volume)
	if err != nil {
		return err
	}
	if size < volume.Bytes {
		if err := s.extendBeside(lock, image, volume, others); err != nil {
			return err
		}
	}
	if err := image.Sync(); err != nil {
		return fmt.Errorf("writing the size of image %s: %w", volume.ImagePath(), err)
	}
	return nil
}

func (s *Store) extendBeside(lock room.DiskLock, image *os.File, volume layout.Volume, others layout.Lister) error {
	if err := s.checkImage(volume); err != nil {
		return err
	}
	// A crash during growth leaves more blocks than the size: they belong to the image.
	taken, err := loopdev.AllocatedBytes(image)
	if err != nil {
		return err
	}
	if err := s.Rooms.CheckGrowth(lock, volume, taken, others); err != nil {
		return err
	}
	return extend(image, volume)
}

// Mend restores what a volume has. The quota of a directory may differ after a crash, or since a
// growth was withdrawn. An image may have holes, because its user discarded blocks. Where other
// files took that room, it is ErrExhausted.
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
	size, err := sizeOf(image, volume)
	if err != nil {
		return err
	}
	err = loopdev.Allocate(image, size)
	if layout.IsNoRoom(err) {
		return fmt.Errorf("%w for parts of image %s that its user discarded: make room before the volume is written there", layout.ErrExhausted, volume.ImagePath())
	}
	return err
}

// Grant grows a volume to the capacity that it requests, if there is room beside the other
// volumes of the node. The room stays allocated until the NodeVolume shows it, or requests
// less.
func (s *Store) Grant(ctx context.Context, volume layout.Volume, others layout.Lister) error {
	lock, err := s.Rooms.Lock(ctx, volume.Path)
	if err != nil {
		return err
	}
	defer lock.Release()
	if volume.Image != nil {
		return s.growImage(lock, volume, others)
	}
	if s.Rooms.Grown(volume.Name, volume.Bytes) < volume.Bytes {
		if err := s.Rooms.CheckGrowth(lock, volume, volume.Used, others); err != nil {
			return err
		}
	}
	if err := limit.Set(s.Base, volume, volume.Bytes); err != nil {
		return err
	}
	s.Rooms.SetGrown(volume.Name, volume.Bytes)
	return nil
}
