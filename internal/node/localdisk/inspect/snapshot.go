package inspect

import (
	"sync"
	"time"

	"github.com/stowage-dev/stowage/internal/device/loopdev"
	"github.com/stowage-dev/stowage/internal/mount"
)

// sceneAge is how old a view of all mounts and loop devices may be: volumes are looked
// at one by one, and each view costs as much as there are.
const sceneAge = 10 * time.Second

// Snapshot is what the node had mounted at a moment.
type Snapshot struct {
	taken    time.Time
	table    mount.Table
	attached loopdev.Attached
}

// Snapshots keeps the newest scene. Its zero value is usable.
type Snapshots struct {
	mu     sync.Mutex
	newest *Snapshot
}

// At is a scene that is nearly as new as now.
func (s *Snapshots) At(now time.Time) (*Snapshot, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.newest != nil && now.Sub(s.newest.taken) < sceneAge && !now.Before(s.newest.taken) {
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
