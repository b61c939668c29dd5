package room

import (
	"context"
	"os"
	"time"

	"github.com/stowage-dev/stowage/internal/node/localdisk/layout"
)

// recentFor is how long a sum of what a disk's volumes have holds.
const recentFor = time.Second

// recent is the room of a disk when its volumes were last summed up, less what new volumes were given since.
type recent struct {
	Room
	summed time.Time
}

// checkNew returns ErrExhausted where a new volume has no room beside the others, and else gives it that room. Where many volumes are
// made one after another, each would sum up all before it. So a sum holds for a second: only this process gives room of this disk, to
// one volume at a time. What volumes write in that second, and what is removed, makes the sum too large. What their users discard
// doesn't count before the next one. A volume that has no room by the sum gets a new one.
func (r *Rooms) checkNew(lock DiskLock, folder *os.File, volume layout.Volume, others layout.Lister) error {
	there, err := r.sinceSummed(lock, folder, volume)
	if err != nil {
		return err
	}
	if there == nil || there.checkNew(volume.Bytes) != nil {
		summed, err := r.beside(lock, folder, volume, others)
		if err == nil {
			err = summed.checkNew(volume.Bytes)
		}
		if err != nil {
			return err
		}
		there = &recent{summed, r.Clock.Now()}
	}
	there.give(volume)
	r.setRecent(lock.Device, there)
	return nil
}

// give counts the room of a new volume. A whole image takes it up at once, and all others as they are written.
func (r *recent) give(volume layout.Volume) {
	r.given += volume.Bytes
	if volume.Image != nil && !volume.Image.Sparse && !volume.Copy {
		r.free -= volume.Bytes
	} else {
		r.unwritten += volume.Bytes
	}
}

// sinceSummed returns the room of a disk by the last sum, or nil if that is too old.
func (r *Rooms) sinceSummed(lock DiskLock, folder *os.File, volume layout.Volume) (*recent, error) {
	last := r.recentOf(lock.Device)
	if last == nil || r.Clock.Since(last.summed) >= recentFor {
		return nil, nil //nolint:nilnil // none is an answer
	}
	disk, now, err := r.open(lock, folder, volume.Reserved)
	if err != nil {
		return nil, err
	}
	disk.close()
	now.free, now.allocated = min(now.free, last.free), last.allocated
	return &recent{now, last.summed}, nil
}

// Came has the next new volume counted beside one that came to its disk, and wasn't made.
func (r *Rooms) Came(ctx context.Context, volume layout.Volume) error {
	lock, err := r.Lock(ctx, volume.Path)
	if err != nil {
		return err
	}
	defer lock.Release()
	r.setRecent(lock.Device, nil)
	return nil
}
