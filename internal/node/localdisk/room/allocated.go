package room

import (
	"os"

	"github.com/stowage-dev/stowage/internal/device"
	"github.com/stowage-dev/stowage/internal/device/loopdev"
	"github.com/stowage-dev/stowage/internal/node/localdisk/layout"
)

// promised is what volumes were given of a disk, in bytes.
type promised struct {
	// given is their capacity, whether they are full or empty.
	given int64
	// unwritten is what they have yet to take up of it. An image tells that itself. Of
	// a directory it is known as it was counted last, up to ten minutes ago; one that
	// nobody counted yet, or that has too many files to count, has all of it to come,
	// and so has a copy where copies share blocks with what they were made from. So too
	// little room may be given for a while, and not too much, unless files that were
	// counted were removed since.
	unwritten int64
}

// promisedOn sums up the volumes that lie on a disk. What counts is that they are
// there: they are made under the same lock as this is asked, so that no record is
// needed which a crash could make wrong, or a cache show too late.
func (l *ledger) promisedOn(disk *disk, others []layout.Volume) (promised, error) {
	var sum promised
	for _, other := range others {
		folder, err := disk.folder(other.Path)
		if err != nil {
			return sum, err
		}
		if folder == nil {
			continue
		}
		held, taken, err := l.heldBy(folder, other, disk.shares)
		if err != nil {
			return sum, err
		}
		sum.given += held
		sum.unwritten += max(0, held-taken)
	}
	return sum, nil
}

// heldBy is how much of its disk a volume was given, and how much of that it takes up.
// One of which nobody knows was given what it asked for, or will be now; what it asks
// for beyond what it was given holds up no other. What an image was given it has,
// whoever was told of it. What is lost may be restored, and keeps its room.
func (l *ledger) heldBy(folder *os.File, volume layout.Volume, shares bool) (held, taken int64, err error) {
	if begun := l.draft(volume.Name); begun != nil {
		taken, err = begun.taken(volume)
		return volume.Bytes, taken, err
	}
	there, err := volume.StatIn(folder)
	switch {
	case err != nil || there == nil && !volume.Provisioned:
		return 0, 0, err
	case there != nil && volume.Image != nil:
		held, taken = there.Size, there.Blocks*device.SectorBytes
	default:
		held, taken = l.heldByDirectory(volume), volume.Used
	}
	if volume.Copy && shares {
		taken = 0
	}
	return held, taken, nil
}

func (l *ledger) heldByDirectory(volume layout.Volume) int64 {
	if volume.Has == 0 {
		return volume.Bytes
	}
	return max(volume.Has, l.Has(volume.Name, volume.Bytes))
}

// taken is how much of the disk a draft takes up. An image has all of its room before
// it is filled; of a copy that is under way nothing counts, as it may share blocks.
func (d *draftRoom) taken(volume layout.Volume) (int64, error) {
	if d.image == nil || volume.Copy {
		return 0, nil
	}
	return loopdev.Taken(d.image)
}
