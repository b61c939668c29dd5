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
	"github.com/stowage-dev/stowage/internal/mount/filetree"
	"github.com/stowage-dev/stowage/internal/mount/safepath"
	"github.com/stowage-dev/stowage/internal/node/localdisk/layout"
	"github.com/stowage-dev/stowage/internal/node/localdisk/limit"
)

// imageMode lets none but root read or write an image: pods get what is in it.
const imageMode = 0o600

// draft is a volume that is being made: its directory has another name. One that is a
// directory has no image.
type draft struct {
	folder, dir, image *os.File
	// device is that of the disk that it lies on.
	device string
}

func (d *draft) close() {
	for _, file := range []*os.File{d.image, d.dir, d.folder} {
		if file != nil {
			file.Close()
		}
	}
}

// makeWhole makes a volume under another name, and gives it its own when all of it
// survives a loss of power: one that has its name is whole, and is never formatted, nor
// copied over. Only room is given in turn; volumes are filled at the same time.
func (s *Store) makeWhole(ctx context.Context, volume layout.Volume, others layout.Lister) error {
	begun, err := s.begin(ctx, volume, others)
	if begun == nil {
		return err
	}
	defer begun.close()
	defer s.Rooms.EndDraft(ctx, begun.device, volume.Name)
	if err := s.fill(ctx, begun, volume); err != nil {
		// Its room isn't given again before the draft is gone.
		return errors.Join(err, filetree.RemoveUnfinished(context.WithoutCancel(ctx), begun.folder, volume.Name))
	}
	return safepath.SyncDir(begun.folder)
}

// begin takes room for a volume, or returns nil for one that was made before a crash.
func (s *Store) begin(ctx context.Context, volume layout.Volume, others layout.Lister) (*draft, error) {
	exists, err := s.Base.Exists(volume)
	if err != nil {
		return nil, err
	}
	if exists {
		return nil, s.adopt(ctx, volume, others)
	}
	if err := s.checkImage(volume); err != nil {
		return nil, err
	}
	begun := &draft{}
	if begun.folder, err = s.Disks.FolderOf(volume); err != nil {
		return nil, err
	}
	// What a crash left takes up room that is asked for here. It may be much.
	err = filetree.RemoveUnfinishedUntil(ctx, begun.folder, volume.Name, s.until())
	if err == nil {
		err = s.allocate(ctx, begun, volume, others)
	}
	if err != nil {
		begun.close()
		return nil, err
	}
	return begun, nil
}

// adopt makes sure that a volume which is there lies on its disk, and survives a loss
// of power: the crash that it comes from may have been before that was done. An image
// may have been asked to grow since.
func (s *Store) adopt(ctx context.Context, volume layout.Volume, others layout.Lister) error {
	folder, err := s.Disks.FolderOf(volume)
	if err != nil {
		return err
	}
	defer folder.Close()
	if err := safepath.SyncDir(folder); err != nil || volume.Image == nil {
		return err
	}
	return s.Grant(ctx, volume, others)
}

// allocate makes the directory of a volume and, if it is one, the file of an image,
// empty, if there is room for it.
func (s *Store) allocate(ctx context.Context, begun *draft, volume layout.Volume, others layout.Lister) error {
	turn, err := s.Rooms.TakeTurn(ctx, volume.Path)
	if err != nil {
		return err
	}
	defer turn.End()
	there, err := s.Rooms.Beside(turn, begun.folder, volume, others)
	if err != nil {
		return err
	}
	if err := there.CheckNew(volume.Bytes); err != nil {
		return err
	}
	if begun.dir, err = filetree.BeginDir(ctx, begun.folder, volume.Name); err != nil {
		return err
	}
	if volume.Image == nil {
		err = limit.SetOnDraft(begun.folder, begun.dir, volume)
	} else {
		begun.image, err = createImage(begun.dir, volume)
	}
	if err != nil {
		return errors.Join(err, filetree.RemoveUnfinished(context.WithoutCancel(ctx), begun.folder, volume.Name))
	}
	begun.device = turn.Device
	s.Rooms.BeginDraft(volume.Name, begun.image)
	return nil
}

// createImage makes a file that has all of its size. One that may share the blocks of
// another needs none of its own before.
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

// extend makes an image as large as it is asked to be.
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

// fill makes what is in a volume, has it written to the disk, and names it.
func (s *Store) fill(ctx context.Context, begun *draft, volume layout.Volume) (err error) {
	switch {
	case volume.Source != nil && volume.Image == nil:
		if err = s.copySource(ctx, begun, volume); err == nil {
			err = limit.SetInodesOfCopy(begun.folder, begun.dir, volume)
		}
	case volume.Source != nil:
		err = s.copySource(ctx, begun, volume)
	case volume.Image.FSType != "":
		err = s.format(ctx, begun, volume)
	}
	if err != nil {
		return err
	}
	if begun.image != nil {
		if err := begun.image.Sync(); err != nil {
			return fmt.Errorf("writing image %s: %w", volume.ImagePath(), err)
		}
	}
	if err := safepath.SyncDir(begun.dir); err != nil {
		return err
	}
	return filetree.FinishDir(begun.folder, volume.Name)
}

// format makes the file system in an image.
func (s *Store) format(ctx context.Context, begun *draft, volume layout.Volume) error {
	err := s.FileSystems.Format(ctx, device.PathOf(begun.image), volume.Image.FSType, volume.Bytes)
	if err != nil {
		return err
	}
	// Where a disk can't write zeros at a stroke, programs make holes instead.
	return extend(begun.image, volume)
}

// checkImage says whether such an image, if it is one, can be made on this node.
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
