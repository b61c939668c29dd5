// Package store makes, copies, grows and removes the directories and images of volumes. A
// volume that has its name is whole: it is filled under another name, and named when all of
// it survives a loss of power. Removal goes in slices, and after a crash it goes on where it
// stopped. The package never mounts anything, and never removes a directory that is mounted
// somewhere, that holds a mount, or that is being copied.
package store

import (
	"context"
	"os"
	"time"

	"github.com/stowage-dev/stowage/internal/device/filesystem"
	"github.com/stowage-dev/stowage/internal/mount/safepath"
	"github.com/stowage-dev/stowage/internal/node/localdisk/identity"
	"github.com/stowage-dev/stowage/internal/node/localdisk/layout"
	"github.com/stowage-dev/stowage/internal/node/localdisk/limit"
	"github.com/stowage-dev/stowage/internal/node/localdisk/room"
)

// Store makes and removes the directories and images of volumes below one base
// directory.
type Store struct {
	// Base is where all volumes lie.
	Base layout.Base
	// Disks recognises the disks that folders lie on.
	Disks identity.Disks
	// Rooms gives room of disks to volumes.
	Rooms *room.Rooms
	// FileSystems makes those in images.
	FileSystems filesystem.FileSystems
	// Slice is how long files are removed before others have their turn. Default: two
	// seconds.
	Slice time.Duration

	// copies are the volumes that are being copied.
	copies copies
}

// NewStore returns a store of the volumes below a base directory.
func NewStore(base string, systems filesystem.FileSystems) *Store {
	return &Store{Base: layout.Base(base), Disks: identity.Disks{Base: layout.Base(base)}, Rooms: room.NewRooms(layout.Base(base)), FileSystems: systems}
}

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
