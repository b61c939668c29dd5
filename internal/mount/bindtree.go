package mount

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"

	"github.com/stowage-dev/stowage/internal/mount/safepath"
)

// threadMountinfo is mountinfo of the calling thread, which may be in a mount
// namespace of its own.
const threadMountinfo = "/proc/thread-self/mountinfo"

// BindTree implements Mounter. What isn't carried over is never mounted at target, not even
// for a moment: a check for users of that mount would count it.
func (Kernel) BindTree(source *os.File, target string, options TreeOptions) error {
	path, err := safepath.PathOf(source)
	if err != nil {
		return err
	}
	var tree int
	switch {
	case options.Propagation != Private:
		tree, err = cloneLinked(source, options)
	case within(path, options.Except):
		tree, err = clone(source, options.Access, Private, 0)
	case within(options.Except, path):
		tree, err = cloneExcept(source, path, options)
	default:
		tree, err = clone(source, options.Access, Private, unix.AT_RECURSIVE)
	}
	if err != nil {
		return err
	}
	defer unix.Close(tree)
	return Attach(tree, target)
}

// clone clones the mount that source is open on, with flag AT_RECURSIVE all that is
// mounted below it, too. The clone isn't mounted anywhere yet.
func clone(source *os.File, access Access, propagation Propagation, depth uint) (tree int, err error) {
	tree, err = unix.OpenTree(int(source.Fd()), "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_EMPTY_PATH|depth)
	if err != nil {
		return -1, fmt.Errorf("cloning the mount of %s: %w", source.Name(), err)
	}
	// A clone of a shared mount is in its peer group: an unmount in the clone would
	// propagate to the source.
	attributes := &unix.MountAttr{Propagation: propagationFlags[propagation]}
	if access == ReadOnly {
		attributes.Attr_set = unix.MOUNT_ATTR_RDONLY
	}
	if err := unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH|depth, attributes); err != nil {
		unix.Close(tree)
		return -1, fmt.Errorf("setting how the mount of %s may be used: %w", source.Name(), err)
	}
	return tree, nil
}

// cloneExcept clones the tree of mounts that source, at path, is the top of. It does so in a mount
// namespace where nothing is mounted at the folder that is left out, or below it.
func cloneExcept(source *os.File, path string, options TreeOptions) (tree int, err error) {
	tree = -1
	err = onThreadOfItsOwn(func() error {
		if err := leaveNamespace(); err != nil {
			return err
		}
		if err := detachBelow(options.Except); err != nil {
			return err
		}
		there, err := openSame(source, path)
		if err != nil {
			return err
		}
		defer there.Close()
		tree, err = clone(there, options.Access, Private, unix.AT_RECURSIVE)
		return err
	})
	return tree, err
}

// onThreadOfItsOwn runs work on a thread that nothing else ever runs on.
func onThreadOfItsOwn(work func() error) error {
	done := make(chan error, 1)
	go func() {
		// Never unlocked: the thread ends with the goroutine. The program's first one
		// doesn't end, and /proc/self describes it: lock it until the next attempt is done.
		runtime.LockOSThread()
		if unix.Gettid() == unix.Getpid() {
			defer runtime.UnlockOSThread()
			done <- onThreadOfItsOwn(work)
			return
		}
		done <- work()
	}()
	return <-done
}

// leaveNamespace moves the calling thread into a mount namespace of its own, which ends with
// the thread. Unmounts there don't propagate.
func leaveNamespace() error {
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("making a mount namespace: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("making a mount namespace private: %w", err)
	}
	return nil
}

// detachBelow unmounts, for the calling thread alone, everything at a folder or below it.
func detachBelow(folder string) error {
	table, err := readTableOf(threadMountinfo)
	if err != nil {
		return err
	}
	for _, point := range table.Below(folder) {
		if err := Unmount(point.Path, unix.MNT_DETACH); err != nil {
			return err
		}
	}
	return nil
}

// openSame opens, in the calling thread's mount namespace, what is open in another one.
func openSame(file *os.File, path string) (*os.File, error) {
	there, err := os.OpenFile(path, unix.O_PATH|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, fmt.Errorf("opening %s in another mount namespace: %w", path, err)
	}
	wanted, err := file.Stat()
	if err != nil {
		there.Close()
		return nil, err
	}
	found, err := there.Stat()
	if err == nil && !os.SameFile(wanted, found) {
		err = fmt.Errorf("opening %s in another mount namespace: it was replaced during the call", path)
	}
	if err != nil {
		there.Close()
		return nil, err
	}
	return there, nil
}

// Bind implements Mounter.
func (Kernel) Bind(source *os.File, target string, access Access) error {
	tree, err := clone(source, access, Private, 0)
	if err != nil {
		return err
	}
	defer unix.Close(tree)
	return Attach(tree, target)
}

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

// shows reports whether the tree of mounts contains a folder of this machine, or a part of it, under
// whatever path. All later mounts in the folder would come with it.
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

// propagationFlags are the flags of a clone. A clone of a shared mount is shared with it as it
// is.
var propagationFlags = map[Propagation]uint64{Private: unix.MS_PRIVATE, Slave: unix.MS_SLAVE, Shared: 0}
