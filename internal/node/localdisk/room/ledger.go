package room

import (
	"os"
	"sync"
)

// ledger is what is remembered of room that was given. It is asked and written for a
// moment only, while no disk is waited for. Its zero value is usable.
type ledger struct {
	mu sync.Mutex
	// growth is what was given to volumes that grew, by their names: what LocalVolumes
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
