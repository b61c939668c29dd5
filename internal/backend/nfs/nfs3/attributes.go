package nfs3

import (
	"time"

	"github.com/stowage-dev/stowage/internal/backend/nfs/tree"
)

// Types of files (ftype3).
const (
	typeRegular   = 1
	typeDirectory = 2
	typeSymlink   = 5
)

// byClient is a time that the call has (SET_TO_CLIENT_TIME).
const permissionBits, byClient = 0o7777, 2

// info reads a fattr3.
func (d *decoder) info() tree.Info {
	info := tree.Info{Type: typeOf(d.uint32())}
	info.Mode = d.uint32() & permissionBits
	d.uint32() // links
	info.UID, info.GID = d.uint32(), d.uint32()
	info.Size = d.uint64()
	d.bytes(8 + 8) // used, device numbers
	info.FileSystem, info.File = d.uint64(), d.uint64()
	d.bytes(8) // read
	info.Modified = time.Unix(int64(d.uint32()), int64(d.uint32()))
	d.bytes(8) // changed
	return info
}

// optionalInfo reads a post_op_attr: attributes that the server may leave out.
func (d *decoder) optionalInfo() (tree.Info, bool) {
	if !d.bool() {
		return tree.Info{}, false
	}
	return d.info(), true
}

func typeOf(code uint32) tree.Type {
	switch code {
	case typeRegular:
		return tree.File
	case typeDirectory:
		return tree.Directory
	case typeSymlink:
		return tree.Symlink
	default:
		return tree.Other
	}
}

// mode writes a sattr3 that sets permission bits alone.
func (e *encoder) mode(mode uint32) *encoder {
	return e.uint32(1, mode, 0, 0, 0, 0, 0)
}

// access writes a sattr3 that sets permission bits, owner and group.
func (e *encoder) access(access tree.Access) *encoder {
	return e.uint32(1, access.Mode, 1, access.UID, 1, access.GID, 0, 0, 0)
}

// size writes a sattr3 that sets the size alone.
func (e *encoder) size(size int64) *encoder {
	return e.uint32(0, 0, 0, 1).uint64(uint64(size)).uint32(0, 0)
}

// owner writes a sattr3 that sets owner and group alone.
func (e *encoder) owner(access tree.Access) *encoder {
	return e.uint32(0, 1, access.UID, 1, access.GID, 0, 0, 0)
}

// modeAndTime writes a sattr3 that sets permission bits and the time of the last change.
func (e *encoder) modeAndTime(info tree.Info) *encoder {
	return e.uint32(1, info.Mode, 0, 0, 0, 0, byClient, uint32(info.Modified.Unix()), uint32(info.Modified.Nanosecond()))
}

// nothing writes a sattr3 that sets nothing.
func (e *encoder) nothing() *encoder {
	return e.uint32(0, 0, 0, 0, 0, 0)
}
