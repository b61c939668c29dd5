package room

import (
	"os"

	"golang.org/x/sys/unix"

	"github.com/stowage-dev/stowage/internal/device"
	"github.com/stowage-dev/stowage/internal/node/localdisk/layout"
)

// allocated is what volumes have of a disk, in bytes.
type allocated struct {
	// given is their capacity, full or empty.
	given int64
	// unwritten is the part of given that they have yet to write. Images are measured. Of a
	// directory, the last count holds, which is up to ten minutes old. A directory without a
	// count has all of it unwritten, and so has a copy that shares blocks with its source. So
	// the room that is reported may be too small for a while. It is too large only if files
	// that were counted were removed since.
	unwritten int64
}

// allocatedOn sums up the volumes on a disk. Those count that exist on it. Volumes are made
// under the lock that the caller holds: no record is needed, which a crash could make wrong.
func (l *ledger) allocatedOn(disk *disk, volumes []layout.Volume) (allocated, error) {
	var sum allocated
	for _, volume := range volumes {
		folder, err := disk.folder(volume.Path)
		if err != nil {
			return sum, err
		}
		if folder == nil {
			continue
		}
		given, taken, err := l.allocatedTo(folder, volume, disk.shares)
		if err != nil {
			return sum, err
		}
		sum.given += given
		sum.unwritten += max(0, given-taken)
	}
	return sum, nil
}

// allocatedTo returns how much of its disk a volume has, and how much of that it takes up. A
// volume of unknown capacity counts with what it requests. A request for growth counts only
// once it was granted. The size of an image counts, even before its status has it. A lost
// volume may be restored, and keeps its room.
func (l *ledger) allocatedTo(folder *os.File, volume layout.Volume, shares bool) (given, taken int64, err error) {
	if begun := l.draft(volume.Name); begun != nil {
		taken, err = begun.taken(volume)
		return volume.Bytes, taken, err
	}
	exists, there := volume.Provisioned, (*unix.Stat_t)(nil)
	if volume.Image != nil || !exists {
		// The disk has nothing to add about a directory that was made, and a node has many of them.
		there, err = volume.StatIn(folder)
	}
	switch {
	case err != nil || there == nil && !exists:
		return 0, 0, err
	case there != nil && volume.Image != nil:
		given, taken = there.Size, there.Blocks*device.SectorBytes
	default:
		given, taken = l.givenToDirectory(volume), volume.Used
	}
	if volume.Copy && shares {
		taken = 0
	}
	return given, taken, nil
}

func (l *ledger) givenToDirectory(volume layout.Volume) int64 {
	if volume.Has == 0 {
		return volume.Bytes
	}
	return max(volume.Has, l.Grown(volume.Name, volume.Bytes))
}
