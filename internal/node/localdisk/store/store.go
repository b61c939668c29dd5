// Package store makes, copies, grows and removes the directories and images of volumes. A
// volume that has its name is whole: it is filled under another name, and named when all of
// it survives a loss of power. Removal goes in slices, and after a crash it goes on where it
// stopped. The package never mounts anything, and never removes a directory that is mounted
// somewhere, that holds a mount, or that is being copied.
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

// IsCopied says whether the volume in a directory is being copied. Who shows one to a
// pod asks afterwards: who copies says so first, and then looks who sees it.
func (s *Store) IsCopied(directory string) bool {
	s.copies.mu.Lock()
	defer s.copies.mu.Unlock()
	return s.copies.of[directory] > 0
}

// until is when a removal that begins now gives its place to others.
func (s *Store) until() time.Time { return time.Now().Add(cmp.Or(s.Slice, defaultSlice)) }

// defaultSlice is how long files are removed before others have their turn: long beside what
// it takes to begin, short beside what users wait for.
const defaultSlice = 2 * time.Second
