// Package mount is the only code in Stowage that mounts and unmounts, and reads the mount
// table. The node manager, its volume types and the NodeVolume reconciler call it, and
// its packages: safepath opens what lies below a directory, filetree removes and moves
// trees of files, remote makes each call that waits for a server in a process of its own.
//
// It works on open files instead of paths wherever the kernel lets it, so that a path
// that changes between a check and its use can't matter: bind mounts are cloned from an
// open source.
//
// It knows nothing of pods, volumes or Kubernetes.
package mount

import (
	"os"

	"github.com/stowage-dev/stowage/internal/mount/safepath"
)

// ErrMounted says that something is mounted where nothing may be: package safepath has the same.
var ErrMounted = safepath.ErrMounted

// Access is what may be done through a mount.
type Access int

const (
	// ReadWrite lets the mount be written as far as the file system does.
	ReadWrite Access = iota
	// ReadOnly refuses every write through this mount.
	ReadOnly
)

// Mounter mounts and unmounts. Kernel is the real one; package mounttest has
// one for tests without root. All are safe for concurrent use.
type Mounter interface {
	// Bind makes the directory that source is open on visible at target, an existing
	// directory, or a file or device at an existing file. Mounts below source are not
	// carried over, and neither is what is mounted or unmounted there, or at target,
	// later. There is no moment at which a ReadOnly mount can be written. Bind isn't
	// idempotent: it mounts over what is mounted at target.
	Bind(source *os.File, target string, access Access) error
	// BindTree does what Bind does, and carries over what is mounted below source now,
	// which ReadOnly holds for, too, and later, if its options say so.
	BindTree(source *os.File, target string, options TreeOptions) error
	// Tmpfs mounts a new file system in memory at target, an existing directory.
	// It isn't idempotent either.
	Tmpfs(target string, options TmpfsOptions) error
	// FileSystem mounts the file system of a device at target, an existing directory,
	// where nobody may have mounted it yet. It isn't idempotent either.
	FileSystem(system FileSystem, target string) error
	// Unmount takes away the topmost mount at path. A path where nothing is
	// mounted, or that doesn't exist, is a success. A mount in use is an error
	// (EBUSY), and stays.
	Unmount(path string) error
	// SetApart has what is mounted and unmounted below the topmost mount at path show
	// nowhere else from now on. A path where nothing is mounted is a success.
	SetApart(path string) error
	// Table is what is mounted now.
	Table() (Table, error)
}

// TreeOptions say how a tree of mounts is bound.
type TreeOptions struct {
	Access Access
	// Except is a folder: nothing that is mounted at it, or below, is carried over. A tree
	// that shows it can only be Private (ErrShows).
	Except string
	// Propagation says what becomes of what is mounted later. Slave and Shared need a
	// source whose mount tells of that (ErrNotShared).
	Propagation Propagation
}

// TmpfsOptions say how a file system in memory is made.
type TmpfsOptions struct {
	// Bytes is its size. 0: the kernel's default, half of the memory.
	Bytes int64
	// Mode is the permission of its top directory, with setgid and the sticky bit, and
	// Group what it belongs to.
	Mode  os.FileMode
	Group int
	// Label is the SELinux label that all of its files have; empty: the kernel's choice.
	Label string
	// NoSwap keeps it from ever being written to a disk, where the kernel can do that:
	// Linux 6.4, outside of user namespaces.
	NoSwap bool
}
