// Package store makes, copies, grows and removes the directories and images of volumes. A
// volume that has its name is whole: it is filled under another name, and renamed when all of
// it survives a loss of power. Removal runs in slices, and continues after a crash. The package
// never mounts anything. It never removes a directory that is mounted somewhere, that holds a
// mount, or that is being copied.
package store

import (
	"cmp"
	"time"

	"github.com/stowage-dev/stowage/internal/device/filesystem"
	"github.com/stowage-dev/stowage/internal/node/localdisk/identity"
	"github.com/stowage-dev/stowage/internal/node/localdisk/layout"
	"github.com/stowage-dev/stowage/internal/node/localdisk/room"
)

// Store makes and removes the directories and images of volumes below one base
// directory.
type Store struct {
	// Base is the directory of the folders of all backends.
	Base layout.Base
	// Disks recognises the disks that folders lie on.
	Disks identity.Disks
	// Rooms allocates room of disks to volumes.
	Rooms *room.Rooms
	// FileSystems makes file systems in images.
	FileSystems filesystem.FileSystems
	// Slice is how long one call removes files. Default: two seconds.
	Slice time.Duration

	copies copies
}

// NewStore returns a store of the volumes below a base directory.
func NewStore(base string, systems filesystem.FileSystems) *Store {
	return &Store{Base: layout.Base(base), Disks: identity.Disks{Base: layout.Base(base)}, Rooms: room.NewRooms(layout.Base(base)), FileSystems: systems}
}

// IsCopied reports whether the volume in a directory is being copied. The CSI driver calls it
// after it has mounted the volume: a copy is recorded first, and then looks for mounts.
func (s *Store) IsCopied(directory string) bool {
	s.copies.mu.Lock()
	defer s.copies.mu.Unlock()
	return s.copies.of[directory] > 0
}

// until is the end of a slice that begins now.
func (s *Store) until() time.Time { return time.Now().Add(cmp.Or(s.Slice, defaultSlice)) }

// defaultSlice is how long one call removes files: long beside what it takes to begin, short
// beside what users wait for.
const defaultSlice = 2 * time.Second
