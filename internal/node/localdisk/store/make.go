package store

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/stowage-dev/stowage/internal/mount/filetree"
	"github.com/stowage-dev/stowage/internal/mount/safepath"
	"github.com/stowage-dev/stowage/internal/node/localdisk/layout"
	"github.com/stowage-dev/stowage/internal/node/localdisk/limit"
)

// Make makes a volume's directory, or its image, if there is room for it beside the other
// volumes of the node. The copy of another volume may take long. A volume that exists is
// adopted: its name contains the claim's UID, so it was made for this volume before a crash.
func (s *Store) Make(ctx context.Context, volume layout.Volume, others layout.Lister) error {
	if volume.Image != nil || volume.Source != nil {
		return s.makeWhole(ctx, volume, others)
	}
	return s.makeDirectory(ctx, volume, others)
}

// makeDirectory makes an empty directory. Under the lock, it only gets its name. It is synced
// after that, at the same time as other volumes. A directory that exists is synced, too: a crash
// may have prevented that.
func (s *Store) makeDirectory(ctx context.Context, volume layout.Volume, others layout.Lister) error {
	exists, err := s.Base.Exists(volume)
	if err != nil {
		return err
	}
	folder, err := s.Disks.FolderOf(volume)
	if err != nil {
		return err
	}
	defer folder.Close()
	if !exists {
		if err := s.makeBeside(ctx, folder, volume, others); err != nil {
			return err
		}
	}
	return safepath.SyncDir(folder)
}

// makeBeside makes a missing directory, if there is room.
func (s *Store) makeBeside(ctx context.Context, folder *os.File, volume layout.Volume, others layout.Lister) error {
	if err := refuseEmpty(volume); err != nil {
		return err
	}
	lock, err := s.Rooms.LockForNew(ctx, folder, volume, others)
	if err != nil {
		return err
	}
	defer lock.Release()
	return limit.MakeDir(ctx, folder, volume)
}

// refuseEmpty returns an error where a copy has no source, because it was there when that was looked for. It isn't made empty, nor
// formatted.
func refuseEmpty(volume layout.Volume) error {
	if volume.Copy && volume.Source == nil {
		return fmt.Errorf("%w: the copy was on its disk just now: its source is looked for again", layout.ErrQueued)
	}
	return nil
}

// makeWhole makes a volume under another name, and renames it when all of it survives a loss of
// power. A volume that has its name is never formatted, nor copied over. Only room is allocated
// under the lock of the disk: volumes are filled at the same time.
func (s *Store) makeWhole(ctx context.Context, volume layout.Volume, others layout.Lister) error {
	begun, err := s.begin(ctx, volume, others)
	if begun == nil {
		return err
	}
	defer begun.close()
	defer s.Rooms.EndDraft(ctx, begun.device, volume.Name)
	if err := s.fill(ctx, begun, volume); err != nil {
		// Before EndDraft: else other volumes get the room that the draft still takes up.
		return errors.Join(err, filetree.RemoveUnfinished(context.WithoutCancel(ctx), begun.folder, volume.Name))
	}
	return safepath.SyncDir(begun.folder)
}

// begin allocates room for a volume. It returns nil for one that was made before a crash.
func (s *Store) begin(ctx context.Context, volume layout.Volume, others layout.Lister) (*draft, error) {
	exists, err := s.Base.Exists(volume)
	if err != nil {
		return nil, err
	}
	if exists {
		return nil, s.adopt(ctx, volume, others)
	}
	if err := errors.Join(refuseEmpty(volume), s.checkImage(volume)); err != nil {
		return nil, err
	}
	begun := &draft{}
	if begun.folder, err = s.Disks.FolderOf(volume); err != nil {
		return nil, err
	}
	// What a crash left takes up room that is needed here. It may be much.
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

// allocate makes an empty directory, and the file of an image in it, if there is room.
func (s *Store) allocate(ctx context.Context, begun *draft, volume layout.Volume, others layout.Lister) error {
	lock, err := s.Rooms.LockForNew(ctx, begun.folder, volume, others)
	if err != nil {
		return err
	}
	defer lock.Release()
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
	begun.device = lock.Device
	s.Rooms.BeginDraft(volume.Name, begun.image)
	return nil
}

// fill makes the content of a volume, syncs it, and renames the volume.
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
