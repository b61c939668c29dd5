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

// Make makes a volume's directory, or its image, if there is room for it beside the
// others of the node. The copy of another volume may take long. One that is there
// already is taken as it is: its name contains the claim's UID, so it was made for this
// volume before a crash.
func (s *Store) Make(ctx context.Context, volume layout.Volume, others layout.Lister) error {
	if volume.Image != nil || volume.Source != nil {
		return s.makeWhole(ctx, volume, others)
	}
	return s.makeDirectory(ctx, volume, others)
}

// makeDirectory makes an empty directory. It is there for others when their turn comes;
// that it survives a loss of power is waited for afterwards, at the same time as for
// theirs. The crash that an older one comes from may have been before that was done.
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

// makeBeside makes a directory that isn't there.
func (s *Store) makeBeside(ctx context.Context, folder *os.File, volume layout.Volume, others layout.Lister) error {
	turn, err := s.Rooms.TakeTurn(ctx, volume.Path)
	if err != nil {
		return err
	}
	defer turn.End()
	there, err := s.Rooms.Beside(turn, folder, volume, others)
	if err != nil {
		return err
	}
	if err := there.CheckNew(volume.Bytes); err != nil {
		return err
	}
	return limit.MakeDir(ctx, folder, volume)
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
