package room

import (
	"os"
	"sync"

	"github.com/stowage-dev/stowage/internal/device/loopdev"
	"github.com/stowage-dev/stowage/internal/node/localdisk/layout"
)

// ledger remembers what was allocated and isn't on a disk, or in a NodeVolume, yet. No method
// waits for a disk. Its zero value is usable.
type ledger struct {
	mu sync.Mutex
	// growth is what volumes that grew have now, by their names. Their status may not be
	// written yet, or not be in the cache.
	growth map[string]int64
	// drafts are the volumes, by their names, that have room and no directory of their name.
	drafts map[string]*draftRoom
	// recents are by the devices of disks. The lock of its disk is held where one is used.
	recents map[string]*recent
}

func (l *ledger) recentOf(device string) *recent {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.recents[device]
}

// setRecent replaces the last sum of a disk; nil: there is none any more.
func (l *ledger) setRecent(device string, there *recent) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.recents == nil {
		l.recents = map[string]*recent{}
	}
	l.recents[device] = there
}

// SetGrown remembers what a volume has after it grew.
func (l *ledger) SetGrown(name string, bytes int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.growth == nil {
		l.growth = map[string]int64{}
	}
	l.growth[name] = bytes
}

// Grown returns what a volume has after it grew, but not more than it requests now.
func (l *ledger) Grown(name string, requested int64) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.growth[name] > requested {
		// The request was withdrawn before the status had the growth: others may have it now.
		l.growth[name] = requested
	}
	return l.growth[name]
}

// Forget drops the growth of a volume that is gone.
func (l *ledger) Forget(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.growth, name)
}

// BeginDraft remembers that a volume has room. The caller holds the lock of the disk. The
// image is nil for a directory.
func (l *ledger) BeginDraft(name string, image *os.File) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.drafts == nil {
		l.drafts = map[string]*draftRoom{}
	}
	l.drafts[name] = &draftRoom{image: image}
}

// Unfinished returns how many volumes have room and aren't made yet.
func (l *ledger) Unfinished() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.drafts)
}

// draft returns the draft of a volume, or nil. It stays open while the lock of its disk is
// held.
func (l *ledger) draft(name string) *draftRoom {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.drafts[name]
}

// draftRoom is the room of a volume that is being made. Its image is nil for a directory.
type draftRoom struct{ image *os.File }

// taken returns how much of the disk a draft takes up. An image has all of its room before it
// is filled. Nothing of an unfinished copy counts, as it may share blocks.
func (d *draftRoom) taken(volume layout.Volume) (int64, error) {
	if d.image == nil || volume.Copy {
		return 0, nil
	}
	return loopdev.AllocatedBytes(d.image)
}
