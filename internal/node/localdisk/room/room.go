package room

import (
	"fmt"

	"github.com/stowage-dev/stowage/internal/node/localdisk/layout"
)

// Room is what a disk has for volumes, in bytes.
type Room struct {
	// total is the size of the disk, used what is taken of it, and free what can still be
	// written.
	total, used, free int64
	// reserved must stay free of volumes.
	reserved int64
	// inodes is how many the file system has, and freeInodes how many are left. Both are 0
	// where the file system has no limit of them.
	inodes, freeInodes int64
	// shares: copies share blocks with their sources.
	shares bool
	allocated
}

// enoughInodes and enoughPart are how many inodes, or at most which part of all, must be left for a
// new volume. Without inodes it can hold no files.
const enoughInodes, enoughPart = 1024, 20

// left is what volumes can still have.
func (r Room) left() int64 {
	if r.lacksInodes() {
		return 0
	}
	return r.leftBytes()
}

func (r Room) leftBytes() int64 {
	return max(0, min(r.total-r.reserved-r.given, r.free-r.unwritten))
}

// lacksInodes reports whether hardly any inodes are left.
func (r Room) lacksInodes() bool {
	return r.inodes > 0 && r.freeInodes < min(enoughInodes, r.inodes/enoughPart)
}

// checkNew returns ErrExhausted where a new volume can't have some bytes.
func (r Room) checkNew(requested int64) error {
	if err := r.check(requested, 0); err != nil {
		return err
	}
	if r.lacksInodes() {
		return fmt.Errorf("%w: hardly any inodes are left on it: remove files, or volumes", layout.ErrExhausted)
	}
	return nil
}

// check returns ErrExhausted where a volume that takes up some bytes already can't have what it
// requests. It allocates nothing that another volume has, nor what other files take up now:
// these may grow later all the same. The messages have no free bytes: each change of a message
// would be a write to the API server.
func (r Room) check(requested, taken int64) error {
	if whole := r.total - r.reserved; requested > whole {
		return fmt.Errorf("%w: %s is requested, and the whole disk has %s for volumes (%s in all, %s reserved)",
			layout.ErrExhausted, layout.Quantity(requested), layout.Quantity(max(whole, 0)), layout.Quantity(r.total), layout.Quantity(r.reserved))
	}
	if requested > r.total-r.reserved-r.given {
		return fmt.Errorf("%w: %s is requested, and other volumes leave less of %s (%s in all, %s reserved): kubectl get nodedisks shows how much",
			layout.ErrExhausted, layout.Quantity(requested), layout.Quantity(r.total-r.reserved), layout.Quantity(r.total), layout.Quantity(r.reserved))
	}
	if requested-taken > r.free-r.unwritten {
		return fmt.Errorf("%w: %s is requested, and less of %s is free and not kept for other volumes: other files take up the rest",
			layout.ErrExhausted, layout.Quantity(requested), layout.Quantity(r.total))
	}
	return nil
}
