// Package mount is the only code in Stowage that mounts and unmounts, and reads the mount table. The
// node manager, its volume types and the NodeVolume reconciler call it, and its packages. Package
// safepath opens what lies below a directory, and filetree removes and moves trees of files. Package
// remote makes each call that waits for a server in a process of its own.
//
// It works on open files instead of paths wherever the kernel lets it. So a path that changes between
// a check and its use can't matter: bind mounts are cloned from an open source.
//
// It knows nothing of pods, volumes or Kubernetes.
package mount

import (
	"os"

	"github.com/stowage-dev/stowage/internal/mount/safepath"
)

// ErrMounted says that something is mounted where nothing may be: package safepath has the same.
var ErrMounted = safepath.ErrMounted

// Mounter mounts and unmounts. Kernel is the real one; package mounttest has
// one for tests without root. All are safe for concurrent use.
type Mounter interface {
	// Bind makes the directory that source is open on visible at target, an existing
	// directory, or a file or device at an existing file. Mounts below source are not
	// carried over, and neither is what is mounted or unmounted there, or at target,
	// later. There is no moment at which a ReadOnly mount can be written. Bind isn't
	// idempotent: it mounts over what is mounted at target.
	Bind(source *os.File, target string, access Access) error
	// BindTree does what Bind does. It also carries over what is mounted below source now, for
	// which ReadOnly holds, too. It carries over later mounts if its options say so.
	BindTree(source *os.File, target string, options TreeOptions) error
	// Tmpfs mounts a new file system in memory at target, an existing directory.
	// It isn't idempotent either.
	Tmpfs(target string, options TmpfsOptions) error
	// FileSystem mounts the file system of a device at target, an existing directory where
	// nothing may be mounted yet. It isn't idempotent either.
	FileSystem(system FileSystem, target string) error
	// Unmount unmounts the topmost mount at path. A path where nothing is mounted, or that
	// doesn't exist, is a success. A mount in use is an error (EBUSY), and stays.
	Unmount(path string) error
	// MakePrivate stops the propagation of mounts and unmounts below the topmost mount at
	// path. A path where nothing is mounted is a success.
	MakePrivate(path string) error
	// Table returns what is mounted now.
	Table() (Table, error)
	// IsMountPoint reports whether anything is mounted at path now. It costs the same however much is mounted elsewhere. A
	// path that doesn't exist is no mount point.
	IsMountPoint(path string) (bool, error)
}
