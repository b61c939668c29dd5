// Package room decides whether a disk has room for a volume, or for its growth. It counts
// what is on the disk, what volumes were given, and what they have yet to write, and lets
// one volume at a time be given room of a disk. It keeps no record: after a restart, the
// disk and the LocalVolumes show what was given. It never writes to a disk.
package room

import (
	"context"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/stowage-dev/stowage/internal/device"
	"github.com/stowage-dev/stowage/internal/keyed"
	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/node/localdisk/layout"
)

// Rooms gives room of disks to volumes, one at a time on each disk, and remembers what it
// gave until disks and LocalVolumes show it.
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

// At finds out what room the disk of a backend's open folder has beside the volumes
// of the node. Of a volume it needs the path and what must stay free.
func (r *Rooms) At(ctx context.Context, folder *os.File, of layout.Volume, volumes layout.Lister) (Room, error) {
	turn, err := r.TakeTurn(ctx, of.Path)
	if err != nil {
		return Room{}, err
	}
	defer turn.End()
	return r.Beside(turn, folder, of, volumes)
}

// measure finds out what room the disk of an open folder has.
func (r *Rooms) measure(turn Turn, folder *os.File, reserved int64, volumes []layout.Volume) (Room, error) {
	var stat unix.Statfs_t
	if err := unix.Fstatfs(int(folder.Fd()), &stat); err != nil {
		return Room{}, fmt.Errorf("asking for the size of the disk at %s: %w", folder.Name(), err)
	}
	there, err := r.diskOf(turn)
	if err != nil {
		return Room{}, err
	}
	defer there.close()
	there.shares = stat.Type == unix.XFS_SUPER_MAGIC || stat.Type == unix.BTRFS_SUPER_MAGIC
	promised, err := r.promisedOn(there, volumes)
	return Room{
		total:  int64(stat.Blocks) * stat.Frsize,
		used:   int64(stat.Blocks-stat.Bfree) * stat.Frsize,
		free:   int64(stat.Bavail) * stat.Frsize,
		inodes: int64(stat.Files), freeInodes: int64(stat.Ffree),
		reserved: reserved, shares: there.shares,
		promised: promised,
	}, err
}

// Beside is what room there is for a volume on the disk of its open folder, beside
// all others that lie on that disk, whatever folder they lie in.
func (r *Rooms) Beside(turn Turn, folder *os.File, volume layout.Volume, others layout.Lister) (Room, error) {
	listed, err := others()
	if err != nil {
		return Room{}, err
	}
	return r.measure(turn, folder, volume.Reserved, listed)
}

// CheckGrowth says whether a volume, which takes up some bytes of its disk already, can
// have all that it asks for. A copy may share what it takes up.
func (r *Rooms) CheckGrowth(turn Turn, volume layout.Volume, taken int64, others layout.Lister) error {
	folder, err := r.Base.Open(volume.Path)
	if err != nil {
		return err
	}
	defer folder.Close()
	there, err := r.Beside(turn, folder, volume, others)
	if err != nil {
		return err
	}
	if volume.Copy && there.shares {
		taken = 0
	}
	return there.check(volume.Bytes, taken)
}

// places reads the mount table.
func (r *Rooms) places() (places, error) {
	base, err := os.OpenFile(string(r.Base), unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return places{}, fmt.Errorf("opening the base directory: %w", err)
	}
	defer base.Close()
	resolved, err := os.Readlink(device.PathOf(base))
	if err != nil {
		return places{}, fmt.Errorf("asking where %s is: %w", r.Base, err)
	}
	table, err := mount.Kernel{}.Table()
	return places{table: table, base: string(r.Base), resolved: resolved}, err
}

// diskOf is the disk whose turn it is.
func (r *Rooms) diskOf(turn Turn) (*disk, error) {
	places, err := r.places()
	if err != nil {
		return nil, err
	}
	if device := places.device(turn.path); device != turn.Device {
		return nil, fmt.Errorf("%w: another disk was mounted at %s just now", layout.ErrPending, turn.path)
	}
	return &disk{base: r.Base, places: places, device: turn.Device, opened: map[string]*os.File{}}, nil
}
