package mount

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/stowage-dev/stowage/internal/mount/safepath"
)

// ErrNotShared says that the kernel tells no other mount of what is mounted in a directory.
var ErrNotShared = errors.New("what is mounted there shows nowhere else")

// ErrShows says that a tree of mounts shows a folder which must be left out of it.
var ErrShows = errors.New("the tree shows a folder that must be left out")

// CheckShared is ErrNotShared if nobody outside of this mount namespace sees what is mounted
// in a folder.
func CheckShared(folder string) error {
	opened, err := safepath.OpenHost(folder)
	if err != nil {
		return err
	}
	defer opened.Close()
	table, err := readTable()
	if err != nil {
		return err
	}
	there, err := originOf(opened, table)
	if err == nil && there.mount.Group == 0 {
		err = fmt.Errorf("%s lies in the mount at %s: %w", there.path, there.mount.Path, ErrNotShared)
	}
	return err
}

// Propagation is on which side of a bind mount shows what is mounted or unmounted below it
// later on the other side.
type Propagation int

const (
	// Private shows it on neither.
	Private Propagation = iota
	// Slave shows at the bind mount what changes at the source. What is mounted at the
	// source later can be written as it can be there, also where the bind mount can't.
	Slave
	// Shared shows that, and the other way round.
	Shared
)

// propagationFlags are what a clone of a shared mount is given. It is shared with it as it is.
var propagationFlags = map[Propagation]uint64{Private: unix.MS_PRIVATE, Slave: unix.MS_SLAVE, Shared: 0}

// cloneLinked clones a tree of mounts that goes on changing with its source.
func cloneLinked(source *os.File, options TreeOptions) (tree int, err error) {
	table, err := readTable()
	if err != nil {
		return -1, err
	}
	from, err := originOf(source, table)
	if err != nil {
		return -1, err
	}
	if from.mount.Group == 0 && (options.Propagation == Shared || from.mount.Master == 0) {
		return -1, fmt.Errorf("%s lies in the mount at %s: %w", from.path, from.mount.Path, ErrNotShared)
	}
	shows, err := from.shows(options.Except, table)
	if err == nil && shows {
		err = fmt.Errorf("%s, which lies in %s or the other way round: %w", options.Except, from.path, ErrShows)
	}
	if err != nil {
		return -1, err
	}
	return clone(source, options.Access, options.Propagation, unix.AT_RECURSIVE)
}

// shows says whether the tree of mounts shows a folder of this machine, or a part of it, by
// whatever path: all that is mounted there later would come with it.
func (o origin) shows(folder string, table Table) (bool, error) {
	opened, err := safepath.OpenHost(folder)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer opened.Close()
	there, err := originOf(opened, table)
	if err != nil {
		return false, err
	}
	visible := []Point{{Device: o.mount.Device, Root: o.root}}
	for _, point := range table.Below(o.path) {
		if point.Path != o.path {
			visible = append(visible, point)
		}
	}
	for _, point := range visible {
		if point.Device == there.mount.Device && (within(there.root, point.Root) || within(point.Root, there.root)) {
			return true, nil
		}
	}
	return false, nil
}

// SetApart implements Mounter.
func (Kernel) SetApart(path string) error {
	err := unix.MountSetattr(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW, &unix.MountAttr{Propagation: unix.MS_PRIVATE})
	// EINVAL: nothing is mounted there.
	if err == nil || errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOENT) {
		return nil
	}
	return fmt.Errorf("setting the mount at %s apart: %w", path, err)
}
