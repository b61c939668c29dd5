// Package room decides whether a disk has room for a volume, or for its growth. It counts
// what is on the disk, what volumes were given, and what they have yet to write, and lets
// one volume at a time be given room of a disk. It keeps no record: after a restart, the
// disk and the NodeVolumes show what was given. It never writes to a disk.
package room

import (
	"context"
	"os"
	"sync"

	"github.com/stowage-dev/stowage/internal/keyed"
	"github.com/stowage-dev/stowage/internal/node/localdisk/layout"
)

// Rooms gives room of disks to volumes, one at a time on each disk, and remembers what it
// gave until disks and NodeVolumes show it.
type Rooms struct {
	// Base is where the folders of all backends lie.
	Base layout.Base
	// locks has a lock for each disk, by its device.
	locks keyed.Locks
	ledger
}

// NewRooms returns what gives room of the disks below a base directory.
func NewRooms(base layout.Base) *Rooms { return &Rooms{Base: base} }

// Turn is the right to give room of a disk to volumes, and to count what was given.
type Turn struct {
	path string
	// Device is the major:minor of the disk.
	Device string
	// End gives the turn to the next volume.
	End func()
}

// TakeTurn waits until no other volume is given room of the disk that a folder lies on.
// A disk that hangs holds up only volumes that are to lie on it.
func (r *Rooms) TakeTurn(ctx context.Context, path string) (Turn, error) {
	places, err := r.places()
	if err != nil {
		return Turn{}, err
	}
	device := places.device(path)
	end, err := r.locks.Acquire(ctx, device)
	return Turn{path: path, Device: device, End: end}, err
}

// ledger is what is remembered of room that was given. It is asked and written for a
// moment only, while no disk is waited for. Its zero value is usable.
type ledger struct {
	mu sync.Mutex
	// growth is what was given to volumes that grew, by their names: what NodeVolumes
	// say of it may not be written, or seen, yet.
	growth map[string]int64
	// drafts are the volumes, by their names, that were given room and don't have their
	// directories yet.
	drafts map[string]*draftRoom
}

// Grew notes what a volume was given.
func (l *ledger) Grew(name string, bytes int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.growth == nil {
		l.growth = map[string]int64{}
	}
	l.growth[name] = bytes
}

// Has is what a volume that asks for some bytes was given.
func (l *ledger) Has(name string, asked int64) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.growth[name] > asked {
		// It was taken back before anybody was told: from here on others may have it.
		l.growth[name] = asked
	}
	return l.growth[name]
}

// Forget drops what is known of a volume that is gone.
func (l *ledger) Forget(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.growth, name)
}

// BeginDraft notes that a volume was given room, during its disk's turn. The image is nil for
// one that is a directory.
func (l *ledger) BeginDraft(name string, image *os.File) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.drafts == nil {
		l.drafts = map[string]*draftRoom{}
	}
	l.drafts[name] = &draftRoom{image: image}
}

// EndDraft notes that a volume has its name, or is gone. It waits for those who count:
// they may be looking into the draft.
func (r *Rooms) EndDraft(ctx context.Context, device, name string) {
	// This context never ends, so there is no error.
	if end, err := r.locks.Acquire(context.WithoutCancel(ctx), device); err == nil {
		defer end()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.drafts, name)
}

// Unfinished returns how many volumes were given room and aren't made yet.
func (l *ledger) Unfinished() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.drafts)
}

// draft is the one of a volume, nil if it has none. It stays open while its disk's turn
// is held.
func (l *ledger) draft(name string) *draftRoom {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.drafts[name]
}

// draftRoom is the room of a volume that is being made. Its image is nil for a directory.
type draftRoom struct{ image *os.File }
