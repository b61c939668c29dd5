package localvolume

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/stowage-dev/stowage/internal/mount"
)

// disk is what there is to know about a disk before a volume is made on it.
// All numbers are bytes.
type disk struct {
	// size is all of it, and available what may still be written.
	size, available int64
	// given is the capacity of the other volumes, whether they are full or empty.
	given int64
	// reserved must stay free of volumes.
	reserved int64
}

// checkRoom says whether a volume that has some bytes of the disk already can
// have wanted bytes: nothing is promised twice, neither to another volume nor to
// the files that lie on the disk beside the volumes.
func (d disk) checkRoom(wanted, has int64) error {
	if left := d.size - d.reserved - d.given; wanted > left {
		return fmt.Errorf("%w: %s is asked for, and %s is left of %s (%s reserved, %s given to other volumes)",
			errExhausted, quantity(wanted), quantity(max(left, 0)), quantity(d.size), quantity(d.reserved), quantity(d.given))
	}
	if wanted-has > d.available {
		return fmt.Errorf("%w: %s is asked for, and only %s of the disk is free: other files take up the rest",
			errExhausted, quantity(wanted-has), quantity(d.available))
	}
	return nil
}

// checkRoom says whether the disk that a folder lies on has room for a volume
// beside the others that lie on it, whatever folder they lie in.
func (s *Store) checkRoom(folder *os.File, volume Volume, others []Volume) error {
	var stat unix.Statfs_t
	if err := unix.Fstatfs(int(folder.Fd()), &stat); err != nil {
		return fmt.Errorf("asking for the size of the disk at %s: %w", volume.Path, err)
	}
	device, err := deviceOf(folder)
	if err != nil {
		return err
	}
	given, err := s.given(device, others)
	if err != nil {
		return err
	}
	on := disk{
		size:      int64(stat.Blocks) * stat.Frsize,
		available: int64(stat.Bavail) * stat.Frsize,
		given:     given,
		reserved:  volume.Reserved,
	}
	return on.checkRoom(volume.Bytes, volume.Has)
}

// given sums up the volumes that lie on a disk. What counts is that their
// directory is there: it is made under the same lock as this is asked, so that
// no record is needed which a crash could make wrong, or a cache show too late.
func (s *Store) given(device uint64, others []Volume) (int64, error) {
	var given int64
	for _, other := range others {
		at, err := s.openPlace(other)
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, mount.ErrOutside) {
			continue
		}
		if err != nil {
			return 0, err
		}
		lies, err := deviceOf(at)
		at.Close()
		if err != nil {
			return 0, err
		}
		if lies == device {
			given += s.heldBy(other)
		}
	}
	return given, nil
}

// heldBy is how much of the disk a volume was given. One of which nobody knows was
// given what it asked for, or will be now; what it asks for beyond what it was
// given holds up no other.
func (s *Store) heldBy(volume Volume) int64 {
	if volume.Has == 0 {
		return volume.Bytes
	}
	if s.granted[volume.Name] > volume.Bytes {
		// It was taken back before anybody was told: from here on others may have it.
		s.granted[volume.Name] = volume.Bytes
	}
	return max(volume.Has, s.granted[volume.Name])
}

// openPlace opens what tells the disk of a volume: its directory or, for one that
// was made and is missing, its folder. What is lost may be restored, and keeps its
// room.
func (s *Store) openPlace(volume Volume) (*os.File, error) {
	dir, err := mount.OpenBeneath(s.Base, volume.directory())
	if volume.Provisioned && errors.Is(err, os.ErrNotExist) {
		return mount.OpenBeneath(s.Base, volume.Path)
	}
	return dir, err
}

func deviceOf(dir *os.File) (uint64, error) {
	var stat unix.Stat_t
	if err := unix.Fstat(int(dir.Fd()), &stat); err != nil {
		return 0, fmt.Errorf("asking for the disk of %s: %w", dir.Name(), err)
	}
	return stat.Dev, nil
}

// quantity writes bytes the way users do, rounded to a tenth of a MiB or more.
func quantity(bytes int64) string {
	const gibibyte, mebibyte = 1 << 30, 1 << 20
	switch {
	case bytes%gibibyte != 0 && bytes > gibibyte:
		return fmt.Sprintf("%.1fGi", float64(bytes)/gibibyte)
	case bytes%mebibyte != 0 && bytes > mebibyte:
		return fmt.Sprintf("%.1fMi", float64(bytes)/mebibyte)
	default:
		return resource.NewQuantity(bytes, resource.BinarySI).String()
	}
}
