package inspect

import (
	"sync"
	"time"

	"github.com/stowage-dev/stowage/internal/device/loopdev"
	"github.com/stowage-dev/stowage/internal/mount"
)

// maxAge is how old a snapshot may be: a new one for each volume would cost as much as there are
// mounts and loop devices.
const maxAge = 10 * time.Second

// Snapshot has the mounts and loop devices of the node at one time.
type Snapshot struct {
	taken    time.Time
	table    mount.Table
	attached loopdev.Attached
}

// Snapshots keeps the newest snapshot. Its zero value is usable.
type Snapshots struct {
	mu     sync.Mutex
	newest *Snapshot
}

// At returns a snapshot that is at most ten seconds old.
func (s *Snapshots) At(now time.Time) (*Snapshot, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.newest != nil && now.Sub(s.newest.taken) < maxAge && !now.Before(s.newest.taken) {
		return s.newest, nil
	}
	table, err := mount.Kernel{}.Table()
	if err != nil {
		return nil, err
	}
	attached, err := loopdev.ReadAttached()
	if err != nil {
		return nil, err
	}
	s.newest = &Snapshot{taken: now, table: table, attached: attached}
	return s.newest, nil
}
