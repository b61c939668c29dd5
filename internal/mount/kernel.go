package mount

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// Kernel is the Mounter of the running system. It needs Linux 5.12, for mounts
// that are read-only from their first moment, and CAP_SYS_ADMIN in the mount
// namespace.
type Kernel struct{}

var _ Mounter = Kernel{}

// Check reports why this process may not mount, or can't see the mount table.
func (Kernel) Check() error {
	if _, err := readTable(); err != nil {
		return err
	}
	// With all that is mounted below: a user namespace may not look under the
	// mounts that it came with.
	tree, err := unix.OpenTree(unix.AT_FDCWD, "/", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
	if err != nil {
		return fmt.Errorf("trying a mount (the node agent must run as root, or privileged): %w", err)
	}
	return unix.Close(tree)
}

// Tmpfs implements Mounter.
func (Kernel) Tmpfs(target string, options TmpfsOptions) error {
	settings := options.settings()
	tree, err := Create("tmpfs", settings, 0)
	if options.NoSwap && errors.Is(err, unix.EINVAL) {
		// This kernel, or this user namespace, can't.
		tree, err = Create("tmpfs", settings[:len(settings)-1], 0)
	}
	if err != nil {
		return err
	}
	defer unix.Close(tree)
	return Attach(tree, target)
}

// Attach mounts a detached tree at target. Before that, a crash drops the tree with its
// descriptor.
func Attach(tree int, target string) error {
	at, err := unix.Open(target, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("opening the mount point %s: %w", target, err)
	}
	defer unix.Close(at)
	const bothOpen = unix.MOVE_MOUNT_F_EMPTY_PATH | unix.MOVE_MOUNT_T_EMPTY_PATH
	if err := unix.MoveMount(tree, "", at, "", bothOpen); err != nil {
		return fmt.Errorf("mounting at %s: %w", target, err)
	}
	return nil
}

// Unmount implements Mounter.
func (Kernel) Unmount(path string) error {
	return Unmount(path, 0)
}

// Detach unmounts the topmost mount at path, also one that is in use: open files stay usable
// until they are closed. It is for file systems that can't be written any more.
func (Kernel) Detach(path string) error {
	return Unmount(path, unix.MNT_DETACH)
}

// Unmount unmounts the topmost mount at path, as Mounter.Unmount does, with flags of
// umount2(2). It may wait for a server.
func Unmount(path string, flags int) error {
	err := unix.Unmount(path, flags|unix.UMOUNT_NOFOLLOW)
	// EINVAL: nothing is mounted there.
	if err == nil || errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOENT) {
		return nil
	}
	return fmt.Errorf("unmounting %s: %w", path, err)
}

// IsMountPoint implements Mounter. It asks no server.
func (Kernel) IsMountPoint(path string) (bool, error) {
	const here = unix.AT_SYMLINK_NOFOLLOW | unix.AT_NO_AUTOMOUNT | unix.AT_STATX_DONT_SYNC
	var answer unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, path, here, unix.STATX_TYPE, &answer)
	switch {
	case errors.Is(err, unix.ENOENT):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("looking for a mount at %s: %w", path, err)
	}
	return answer.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0, nil
}

// Table implements Mounter.
func (Kernel) Table() (Table, error) {
	return readTable()
}

// MakePrivate implements Mounter.
func (Kernel) MakePrivate(path string) error {
	err := unix.MountSetattr(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW, &unix.MountAttr{Propagation: unix.MS_PRIVATE})
	// EINVAL: nothing is mounted there.
	if err == nil || errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOENT) {
		return nil
	}
	return fmt.Errorf("making the mount at %s private: %w", path, err)
}
