package localvolume

import (
	"context"
	"sync"
)

// turn is the right to give room of a disk to volumes, and to count what was given.
type turn struct {
	path, device string
	end          func()
}

// takeTurn waits until no other volume is given room of the disk that a folder lies on.
// A disk that hangs holds up only volumes that are to lie on it.
func (s *Store) takeTurn(ctx context.Context, path string) (turn, error) {
	places, err := s.places()
	if err != nil {
		return turn{}, err
	}
	device := places.device(path)
	end, err := s.locks.Acquire(ctx, device)
	return turn{path: path, device: device, end: end}, err
}

// ledger is what a Store remembers of room that it gave. It is asked and written for a
// moment only, while no disk is waited for. Its zero value is usable.
type ledger struct {
	mu sync.Mutex
	// growth is what was given to volumes that grew, by their names: what LocalVolumes
	// say of it may not be written, or seen, yet.
	growth map[string]int64
	// drafts are the volumes, by their names, that were given room and don't have their
	// directories yet.
	drafts map[string]*draft
}

// grew notes what a volume was given.
func (l *ledger) grew(name string, bytes int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.growth == nil {
		l.growth = map[string]int64{}
	}
	l.growth[name] = bytes
}

// has is what a volume that asks for some bytes was given.
func (l *ledger) has(name string, asked int64) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.growth[name] > asked {
		// It was taken back before anybody was told: from here on others may have it.
		l.growth[name] = asked
	}
	return l.growth[name]
}

// forget drops what is known of a volume that is gone.
func (l *ledger) forget(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.growth, name)
}

func (l *ledger) begin(name string, begun *draft) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.drafts == nil {
		l.drafts = map[string]*draft{}
	}
	l.drafts[name] = begun
}

func (l *ledger) end(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.drafts, name)
}

// draft is the one of a volume, nil if it has none. It stays open while its disk's turn
// is held.
func (l *ledger) draft(name string) *draft {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.drafts[name]
}
