package mount

import (
	"os"
	"strconv"

	"github.com/stowage-dev/stowage/internal/mount/safepath"
)

// Access is what may be done through a mount.
type Access int

const (
	// ReadWrite lets the mount be written as far as the file system allows.
	ReadWrite Access = iota
	// ReadOnly refuses every write through this mount.
	ReadOnly
)

// Propagation is what becomes of mounts and unmounts below a bind mount or its source later.
type Propagation int

const (
	// Private propagates none of them.
	Private Propagation = iota
	// Slave propagates those of the source to the bind mount. What is mounted at the source
	// later can be written there as at the source, also where the bind mount is read-only.
	Slave
	// Shared propagates them both ways.
	Shared
)

// TreeOptions say how a tree of mounts is bound.
type TreeOptions struct {
	Access Access
	// Except is a folder: nothing that is mounted at it, or below, is carried over. A tree
	// that contains it can only be Private (ErrShows).
	Except string
	// Propagation is what becomes of what is mounted later. Slave and Shared need a source
	// in a shared mount (ErrNotShared).
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

// settings end with noswap, where it is wanted: not every kernel has it.
func (o TmpfsOptions) settings() []Setting {
	settings := []Setting{
		{"source", "tmpfs"}, {"mode", strconv.FormatUint(uint64(safepath.ModeBits(o.Mode)), 8)}, {"gid", strconv.Itoa(o.Group)},
	}
	if o.Bytes > 0 {
		settings = append(settings, Setting{"size", strconv.FormatInt(o.Bytes, 10)})
	}
	if o.Label != "" {
		settings = append(settings, Setting{"context", o.Label})
	}
	if o.NoSwap {
		settings = append(settings, Setting{Key: "noswap"})
	}
	return settings
}

// FileSystem is a file system on a block device, and how it is mounted.
type FileSystem struct {
	// Type is its type, such as ext4, and Source the path of its device.
	Type, Source string
	// Settings are options of the file system.
	Settings []Setting
	// Attributes are those of the mount: MOUNT_ATTR_NOEXEC and its like.
	Attributes int
	// Access is what may be done with the file system, by whatever mount of it.
	Access Access
	// Mode is that of its top directory from the moment that it is mounted; 0: its own.
	Mode os.FileMode
}
