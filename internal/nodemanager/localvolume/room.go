package localvolume

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/stowage-dev/stowage/internal/mount"
)

// room is how much of a disk there is for volumes, in bytes.
type room struct {
	// total is the size of the disk, used what is taken of it, and free what may
	// still be written.
	total, used, free int64
	// given is the capacity of the volumes, whether they are full or empty.
	given int64
	// reserved must stay free of volumes.
	reserved int64
}

// left is what may still be given to volumes.
func (r room) left() int64 { return max(0, min(r.total-r.reserved-r.given, r.free)) }

// check says whether a volume that has some bytes of the disk already can have
// wanted bytes: nothing is promised twice, neither to another volume nor to the
// files that lie on the disk beside the volumes.
func (r room) check(wanted, has int64) error {
	if left := r.total - r.reserved - r.given; wanted > left {
		return fmt.Errorf("%w: %s is asked for, and %s is left of %s (%s reserved, %s given to other volumes)",
			errExhausted, quantity(wanted), quantity(max(left, 0)), quantity(r.total), quantity(r.reserved), quantity(r.given))
	}
	if wanted-has > r.free {
		return fmt.Errorf("%w: %s is asked for, and only %s of the disk is free: other files take up the rest",
			errExhausted, quantity(wanted-has), quantity(r.free))
	}
	return nil
}

// checkRoom says whether the disk that a folder lies on has room for a volume
// beside the others that lie on it, whatever folder they lie in.
func (s *Store) checkRoom(folder *os.File, volume Volume, others []Volume) error {
	there, err := s.measure(folder, volume.Reserved, others)
	if err != nil {
		return err
	}
	return there.check(volume.Bytes, volume.Has)
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
		if lies != device {
			continue
		}
		held, err := s.heldBy(other)
		if err != nil {
			return 0, err
		}
		given += held
	}
	return given, nil
}

// heldBy is how much of the disk a volume was given. One of which nobody knows was
// given what it asked for, or will be now; what it asks for beyond what it was
// given holds up no other. What an image was given it has, whoever was told of it.
func (s *Store) heldBy(volume Volume) (int64, error) {
	if volume.Image != nil {
		bytes, err := s.imageBytes(volume)
		if !errors.Is(err, os.ErrNotExist) {
			return bytes, err
		}
	}
	if volume.Has == 0 {
		return volume.Bytes, nil
	}
	if s.granted[volume.Name] > volume.Bytes {
		// It was taken back before anybody was told: from here on others may have it.
		s.granted[volume.Name] = volume.Bytes
	}
	return max(volume.Has, s.granted[volume.Name]), nil
}

// openPlace opens what tells the disk of a volume: its directory or, for one that
// was made and is missing, or is being made, its folder. What is lost may be
// restored, and keeps its room.
func (s *Store) openPlace(volume Volume) (*os.File, error) {
	dir, err := mount.OpenBeneath(s.Base, volume.directory())
	if (volume.Provisioned || s.drafts[volume.Name]) && errors.Is(err, os.ErrNotExist) {
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

// isNoRoom says whether the disk itself refused to hold more.
func isNoRoom(err error) bool { return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) }

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
