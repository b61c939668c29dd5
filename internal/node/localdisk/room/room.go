package room

import (
	"fmt"
	"os"

	"github.com/stowage-dev/stowage/internal/node/localdisk/layout"
)

// Room is how much of a disk there is for volumes, in bytes.
type Room struct {
	// total is the size of the disk, used what is taken of it, and free what may
	// still be written.
	total, used, free int64
	// reserved must stay free of volumes.
	reserved int64
	// inodes is how many the file system has, and freeInodes how many of them are left. Both
	// are 0 where it has no number of them.
	inodes, freeInodes int64
	// shares: copies share blocks on it with what they were made from.
	shares bool
	promised
}

// enoughInodes and enoughPart are how many inodes, or at most which part of all, must be left
// for a new volume: one without files is of no use.
const enoughInodes, enoughPart = 1024, 20

// left is what may still be given to volumes.
func (r Room) left() int64 {
	if r.lacksInodes() {
		return 0
	}
	return r.leftBytes()
}

func (r Room) leftBytes() int64 {
	return max(0, min(r.total-r.reserved-r.given, r.free-r.unwritten))
}

// lacksInodes says whether hardly any inodes are left.
func (r Room) lacksInodes() bool {
	return r.inodes > 0 && r.freeInodes < min(enoughInodes, r.inodes/enoughPart)
}

// CheckNew says whether a new volume can have wanted bytes.
func (r Room) CheckNew(wanted int64) error {
	if err := r.check(wanted, 0); err != nil {
		return err
	}
	if r.lacksInodes() {
		return fmt.Errorf("%w: hardly any inodes are left on it: remove files, or volumes", layout.ErrExhausted)
	}
	return nil
}

// check says whether a volume that takes up some bytes of the disk already can have
// wanted bytes. Neither what another volume was given is promised again, nor what is
// taken now by files that are no volumes: these may grow later all the same. The errors
// are ErrExhausted. They tell sizes, and no number of free bytes: they are written to
// objects, again with each change.
func (r Room) check(wanted, taken int64) error {
	if whole := r.total - r.reserved; wanted > whole {
		return fmt.Errorf("%w: %s is asked for, and the whole disk has %s for volumes (%s in all, %s reserved)",
			layout.ErrExhausted, layout.Quantity(wanted), layout.Quantity(max(whole, 0)), layout.Quantity(r.total), layout.Quantity(r.reserved))
	}
	if wanted > r.total-r.reserved-r.given {
		return fmt.Errorf("%w: %s is asked for, and other volumes leave less of %s (%s in all, %s reserved): kubectl get nodedisks shows how much",
			layout.ErrExhausted, layout.Quantity(wanted), layout.Quantity(r.total-r.reserved), layout.Quantity(r.total), layout.Quantity(r.reserved))
	}
	if wanted-taken > r.free-r.unwritten {
		return fmt.Errorf("%w: %s is asked for, and less of %s is free and not kept for other volumes: other files take up the rest",
			layout.ErrExhausted, layout.Quantity(wanted), layout.Quantity(r.total))
	}
	return nil
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
