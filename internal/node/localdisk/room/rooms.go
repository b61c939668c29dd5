// Package room decides whether a disk has room for a volume, or for its growth. It counts
// what is on the disk, the capacity of its volumes, and what they have yet to write. It
// allocates room to one volume of a disk at a time. It keeps no record: after a restart, the
// disk and the NodeVolumes show what is allocated. It never writes to a disk.
package room

import (
	"context"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
	"k8s.io/utils/clock"

	"github.com/stowage-dev/stowage/internal/keyed"
	"github.com/stowage-dev/stowage/internal/node/localdisk/layout"
)

// Rooms allocates room of disks to volumes, under one lock for each disk. It remembers
// allocations until disks and NodeVolumes show them.
type Rooms struct {
	// Base is the directory of the folders of all backends.
	Base layout.Base
	// Clock is the time. NewRooms sets the real one.
	Clock clock.PassiveClock
	// locks are by the devices of disks.
	locks keyed.Locks
	ledger
}

// NewRooms returns the room of the disks below a base directory.
func NewRooms(base layout.Base) *Rooms { return &Rooms{Base: base, Clock: clock.RealClock{}} }

// DiskLock is the right to allocate room of a disk, and to count what is allocated.
type DiskLock struct {
	path string
	// Device is the major:minor of the disk.
	Device string
	// Release ends the lock.
	Release func()
}

// Lock waits for the lock of the disk that a folder lies on. A disk that hangs delays only
// volumes of that disk.
func (r *Rooms) Lock(ctx context.Context, path string) (DiskLock, error) {
	devices, err := readDevices(r.Base)
	if err != nil {
		return DiskLock{}, err
	}
	device := devices.at(path)
	release, err := r.locks.Acquire(ctx, device)
	return DiskLock{path: path, Device: device, Release: release}, err
}

// LockForNew waits for the lock of the disk of an open folder. It returns ErrExhausted, without
// the lock, where a new volume has no room beside the others.
func (r *Rooms) LockForNew(ctx context.Context, folder *os.File, volume layout.Volume, others layout.Lister) (DiskLock, error) {
	lock, err := r.Lock(ctx, volume.Path)
	if err != nil {
		return lock, err
	}
	if err = r.giveNew(lock, folder, volume, others); err != nil {
		lock.Release()
	}
	return lock, err
}

// giveNew gives a new volume its room beside the others, or returns ErrExhausted. Where many volumes are made one after another, each
// would sum up all before it. So a sum holds for a second: only this process gives room of this disk, to one volume at a time. What
// volumes write in that second, and what is removed, makes the sum too large. What their users discard doesn't count before the next
// one, unless files that are no volumes take as much in that second. A volume that has no room by the sum gets a new one.
func (r *Rooms) giveNew(lock DiskLock, folder *os.File, volume layout.Volume, others layout.Lister) error {
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

// Recount drops the last sum of the disk of a folder: a volume came to it that wasn't made.
func (r *Rooms) Recount(ctx context.Context, path string) error {
	lock, err := r.Lock(ctx, path)
	if err != nil {
		return err
	}
	defer lock.Release()
	r.setRecent(lock.Device, nil)
	return nil
}

// EndDraft forgets a draft: its volume has its name, or is gone. It waits for the lock of the
// disk, as its holder may read the draft.
func (r *Rooms) EndDraft(ctx context.Context, device, name string) {
	// This context never ends, so there is no error.
	if release, err := r.locks.Acquire(context.WithoutCancel(ctx), device); err == nil {
		defer release()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.drafts, name)
}

// At measures the room of the disk of a backend's open folder, beside the volumes of the node.
// Of a volume it needs the path and what must stay free.
func (r *Rooms) At(ctx context.Context, folder *os.File, of layout.Volume, volumes layout.Lister) (Room, error) {
	lock, err := r.Lock(ctx, of.Path)
	if err != nil {
		return Room{}, err
	}
	defer lock.Release()
	return r.beside(lock, folder, of, volumes)
}

// beside measures the room for a volume on the disk of its open folder, beside all other
// volumes of that disk, in all folders.
func (r *Rooms) beside(lock DiskLock, folder *os.File, volume layout.Volume, others layout.Lister) (Room, error) {
	listed, err := others()
	if err != nil {
		return Room{}, err
	}
	return r.measure(lock, folder, volume.Reserved, listed)
}

// CheckGrowth returns ErrExhausted where a volume can't have all that it requests. It takes up
// some bytes of its disk already, which a copy may share.
func (r *Rooms) CheckGrowth(lock DiskLock, volume layout.Volume, taken int64, others layout.Lister) error {
	r.setRecent(lock.Device, nil)
	folder, err := r.Base.Open(volume.Path)
	if err != nil {
		return err
	}
	defer folder.Close()
	there, err := r.beside(lock, folder, volume, others)
	if err != nil {
		return err
	}
	if volume.Copy && there.shares {
		taken = 0
	}
	return there.check(volume.Bytes, taken)
}

func (r *Rooms) measure(lock DiskLock, folder *os.File, reserved int64, volumes []layout.Volume) (Room, error) {
	disk, there, err := r.open(lock, folder, reserved)
	if err != nil {
		return Room{}, err
	}
	defer disk.close()
	there.allocated, err = r.allocatedOn(disk, volumes)
	return there, err
}

// open opens the disk of a lock, and returns its room but for what volumes have of it.
func (r *Rooms) open(lock DiskLock, folder *os.File, reserved int64) (*disk, Room, error) {
	var stat unix.Statfs_t
	if err := unix.Fstatfs(int(folder.Fd()), &stat); err != nil {
		return nil, Room{}, fmt.Errorf("reading the size of the disk at %s: %w", folder.Name(), err)
	}
	there, err := r.diskOf(lock)
	if err != nil {
		return nil, Room{}, err
	}
	there.shares = stat.Type == unix.XFS_SUPER_MAGIC || stat.Type == unix.BTRFS_SUPER_MAGIC
	return there, Room{
		total:  int64(stat.Blocks) * stat.Frsize,
		used:   int64(stat.Blocks-stat.Bfree) * stat.Frsize,
		free:   int64(stat.Bavail) * stat.Frsize,
		inodes: int64(stat.Files), freeInodes: int64(stat.Ffree),
		reserved: reserved, shares: there.shares,
	}, nil
}

// diskOf returns the disk of a lock. It is ErrPending if another disk was mounted since.
func (r *Rooms) diskOf(lock DiskLock) (*disk, error) {
	devices, err := readDevices(r.Base)
	if err != nil {
		return nil, err
	}
	if device := devices.at(lock.path); device != lock.Device {
		return nil, fmt.Errorf("%w: another disk was mounted at %s just now", layout.ErrPending, lock.path)
	}
	return &disk{base: r.Base, devices: devices, device: lock.Device, opened: map[string]*os.File{}}, nil
}
