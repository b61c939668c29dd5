package filetree

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"

	"github.com/stowage-dev/stowage/internal/mount/safepath"
)

// maxRemembered is how many levels of a tree a removal remembers, in 16 MiB.
const maxRemembered = 1 << 20

// identity identifies a directory on this machine.
type identity struct{ device, inode uint64 }

func identityOf(dir *os.File) (identity, error) {
	var stat unix.Stat_t
	if err := unix.Fstat(int(dir.Fd()), &stat); err != nil {
		return identity{}, &os.PathError{Op: "identifying", Path: dir.Name(), Err: err}
	}
	return identity{stat.Dev, stat.Ino}, nil
}

// descent is a way down from an open directory, of which the last one is open, too.
type descent struct {
	top, here *os.File
	// above are the directories between the two, the top first. Partial says that the first
	// of them were forgotten.
	above   []identity
	partial bool
	// lost says that the last way up led to another directory than the way down.
	lost bool
}

// emptyDeep removes all that a directory holds, however deep it is, with three directories
// open and 16 bytes a level. The way back up is "..", which is believed only if it is the
// directory from which the way led down.
func (r *removal) emptyDeep(top *os.File) error {
	way := &descent{top: top, here: top}
	defer way.restart()
	for {
		child, err := r.emptyUntilChild(way.here)
		switch {
		case err != nil:
			return err
		case child != nil:
			r.steps++
			err = way.down(child)
		case way.here == way.top:
			return nil
		default:
			err = way.up()
		}
		if err != nil {
			return err
		}
		// A process that moves directories about must not keep the removal beyond its time.
		if way.lost && r.isLate() {
			return ErrUnfinished
		}
	}
}

// emptyUntilChild removes what a directory holds until it meets a directory that isn't
// empty, which it opens. It is nil if there is none.
func (r *removal) emptyUntilChild(dir *os.File) (child *os.File, err error) {
	for {
		names, err := r.batch(dir)
		if err != nil || len(names) == 0 {
			return nil, err
		}
		for _, name := range names {
			err := unlinkAnyway(dir, name, 0)
			if errors.Is(err, unix.EISDIR) {
				err = unlink(dir, name, unix.AT_REMOVEDIR)
			}
			if errors.Is(err, unix.ENOTEMPTY) || errors.Is(err, unix.EEXIST) {
				return openAnyway(dir, name)
			}
			if err == nil {
				err = r.count()
			}
			if err != nil {
				return nil, err
			}
		}
	}
}

func (d *descent) down(child *os.File) error {
	id, err := identityOf(d.here)
	if err != nil {
		child.Close()
		return err
	}
	if len(d.above) == maxRemembered {
		d.above, d.partial = append(d.above[:0], d.above[maxRemembered/2:]...), true
	}
	d.above = append(d.above, id)
	d.closeHere()
	d.here = child
	return nil
}

// up goes to the directory above. Where that isn't the one that was left, the way begins again at the top.
// Something may have been moved during the removal, or was forgotten.
func (d *descent) up() error {
	d.lost = false
	if len(d.above) == 0 {
		d.restart()
		return nil
	}
	parent, err := safepath.Openat2(d.here, "..", unix.O_RDONLY|unix.O_DIRECTORY, unix.RESOLVE_NO_XDEV|unix.RESOLVE_NO_SYMLINKS)
	if err != nil {
		return err
	}
	id, err := identityOf(parent)
	if err != nil || id != d.above[len(d.above)-1] {
		parent.Close()
		d.restart()
		d.lost = true
		return err
	}
	d.above = d.above[:len(d.above)-1]
	d.closeHere()
	d.here = parent
	if len(d.above) == 0 && !d.partial {
		d.restart()
	}
	return nil
}

// restart begins again at the top.
func (d *descent) restart() {
	d.closeHere()
	d.here, d.above, d.partial = d.top, nil, false
}

func (d *descent) closeHere() {
	if d.here != d.top {
		d.here.Close()
	}
}
