package store

import (
	"context"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/device"
	"github.com/stowage-dev/stowage/internal/device/loopdev"
	"github.com/stowage-dev/stowage/internal/mount/safepath"
	"github.com/stowage-dev/stowage/internal/node/localdisk/layout"
)

// imageMode lets only root read or write an image: pods get the file system in it.
const imageMode = 0o600

// draft is a volume that is being made, under another name. A directory has no image.
type draft struct {
	folder, dir, image *os.File
	// device is the major:minor of its disk.
	device string
}

func (d *draft) close() {
	for _, file := range []*os.File{d.image, d.dir, d.folder} {
		if file != nil {
			file.Close()
		}
	}
}

// createImage makes a file of the full size. A copy gets none: it may share blocks.
func createImage(dir *os.File, volume layout.Volume) (*os.File, error) {
	fd, err := unix.Openat(int(dir.Fd()), stowagev1alpha1.ImageFile, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL|unix.O_CLOEXEC, imageMode)
	if err != nil {
		return nil, &os.PathError{Op: "making", Path: volume.ImagePath(), Err: err}
	}
	image := os.NewFile(uintptr(fd), volume.ImagePath())
	if err = loopdev.WriteInPlace(image); err == nil && volume.Source == nil {
		err = extend(image, volume)
	}
	if err != nil {
		image.Close()
		return nil, err
	}
	return image, nil
}

// extend extends an image to the requested size.
func extend(image *os.File, volume layout.Volume) error {
	var err error
	if volume.Image.Sparse {
		err = image.Truncate(volume.Bytes)
	} else {
		err = loopdev.Allocate(image, volume.Bytes)
	}
	if errors.Is(err, device.ErrCannotAllocate) {
		return fmt.Errorf("%w: use a disk with ext4, xfs or btrfs, or ask for local.allocation Sparse", err)
	}
	return err
}

// format makes the file system in an image.
func (s *Store) format(ctx context.Context, begun *draft, volume layout.Volume) error {
	err := s.FileSystems.Format(ctx, device.PathOf(begun.image), volume.Image.FSType, volume.Bytes)
	if err != nil {
		return err
	}
	// mkfs makes holes on a disk that can't write zeros at once: they are allocated again.
	return extend(begun.image, volume)
}

// checkImage returns an error where this node can't make an image of this size and type. It
// accepts all directories.
func (s *Store) checkImage(volume layout.Volume) error {
	if volume.Image == nil {
		return nil
	}
	if volume.Bytes%device.SectorBytes != 0 {
		return fmt.Errorf("%w: the capacity of an image, %d bytes, must be a multiple of %d", layout.ErrInvalid, volume.Bytes, device.SectorBytes)
	}
	if volume.Image.FSType == "" {
		return nil
	}
	return s.FileSystems.CheckType(volume.Image.FSType, volume.Bytes)
}

// refuseLarger returns an error where a copy would lose the end of an image.
func refuseLarger(from *os.File, volume layout.Volume) error {
	size, err := sizeOf(from, *volume.Source)
	if err == nil && size > volume.Bytes {
		err = fmt.Errorf("%w: its image has %s: create the claim again, and request as much", layout.ErrInvalid, layout.Quantity(size))
	}
	return err
}

func sizeOf(image *os.File, volume layout.Volume) (int64, error) {
	info, err := image.Stat()
	if err != nil {
		return 0, fmt.Errorf("reading the size of %s: %w", volume.ImagePath(), err)
	}
	return info.Size(), nil
}

// reserveImage prevents that the image in a directory is attached until release is called. It is
// ErrInUse if the image is attached now.
func reserveImage(ctx context.Context, dir *os.File) (release func(), err error) {
	image, err := safepath.OpenFileAt(dir, stowagev1alpha1.ImageFile)
	if errors.Is(err, os.ErrNotExist) {
		return func() {}, nil
	}
	if err != nil {
		return nil, err
	}
	defer image.Close()
	held, err := loopdev.Reserve(ctx, image)
	if errors.Is(err, device.ErrAttached) || errors.Is(err, device.ErrReserved) {
		return nil, fmt.Errorf("%w: %w", layout.ErrInUse, err)
	}
	if err != nil {
		return nil, err
	}
	return func() { held.Close() }, nil
}
