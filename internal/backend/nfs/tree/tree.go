// Package tree has the few operations on files and directories that the NFS backend needs, and what
// is built from them. These open paths, write files atomically, and remove whole trees.
//
// Two packages implement Dir: nfs3 calls the server itself, mounted works on a share that is mounted
// in the manager's pod. The rules that keep data safe are the same for both: they follow no symlink,
// and no step leaves the file system of the share. Errors are or wrap an errno.
package tree

import (
	"context"
	"errors"
	"iter"
	"strings"
	"syscall"
	"time"
)

// MaxName is how many bytes a name may have: no file system has longer ones.
const MaxName = 1023

var (
	// ErrLost is part of the error of a changing call with a lost answer: it may have had, or may
	// still have, its effect.
	ErrLost = errors.New("the answer was lost, the outcome is not known")
	// ErrOtherFileSystem is a directory on another file system than its parent: something is mounted
	// there.
	ErrOtherFileSystem = errors.New("another file system is mounted there")
	// ErrCursor is a cursor that is invalid because its directory changed: the listing has to
	// restart.
	ErrCursor = errors.New("the directory was changed, and its listing can't go on where it was")
)

// Dir is a directory of a share. Names are single names, never paths.
// A Dir is used by one goroutine at a time.
type Dir interface {
	Reader
	Writer
	// Close closes the directory; for a share's root, also the connection. Nothing opened from the
	// root can be used after it.
	Close() error
}

// Reader are the calls of a Dir that change nothing.
type Reader interface {
	// Stat describes the directory itself.
	Stat(ctx context.Context) (Info, error)
	// Lookup describes the entry with this name; of a symlink, the link.
	Lookup(ctx context.Context, name string) (Info, error)
	// Open opens a directory in this one. A symlink is ENOTDIR.
	Open(ctx context.Context, name string) (Dir, error)
	// List iterates over the directory's entries, without "." and "..", from a cursor on. The cursor
	// may be of another listing of the directory, also of another process. ErrCursor says that it is
	// invalid.
	List(ctx context.Context, from Cursor) iter.Seq2[Entry, error]
	// ReadFile reads a regular file of at most limit bytes.
	ReadFile(ctx context.Context, name string, limit int) ([]byte, error)
	// OpenFile opens a regular file for reading. Anything else is EINVAL.
	OpenFile(ctx context.Context, name string) (RegularFile, error)
	// ReadLink reads the text of a symlink.
	ReadLink(ctx context.Context, name string) (string, error)
	// Writable reports whether names can be made in and removed from the directory.
	Writable(ctx context.Context) (bool, error)
	// Space returns the size of the file system.
	Space(ctx context.Context) (Space, error)
}

// Writer are the calls of a Dir that change something. Each is durable when it returns nil, and
// changes nothing if it returns an error that isn't ErrLost or EIO.
type Writer interface {
	// MakeDir makes a directory. If its answer is lost, a directory that exists afterwards counts as
	// made.
	MakeDir(ctx context.Context, name string, mode uint32) error
	// MakeLink makes a symlink, which is never followed: a name with a text, made atomically, by only
	// one of several callers.
	MakeLink(ctx context.Context, name, text string) error
	// WriteFile makes a file, readable by its owner alone.
	WriteFile(ctx context.Context, name string, data []byte) error
	// MakeFile opens a regular file for writing. It makes one, readable by its owner alone, if the name is
	// free.
	MakeFile(ctx context.Context, name string) (RegularFile, error)
	// SetInfo gives an entry an owner and then, unless it is a symlink, a mode and the time of its last change. After an
	// error it may have the owner alone.
	SetInfo(ctx context.Context, name string, info Info) error
	// SetAccess gives the directory itself an owner and a mode.
	SetAccess(ctx context.Context, access Access) error
	// Rename moves the entry with this name to a directory of the same share. It replaces a file or
	// an empty directory with the new name.
	Rename(ctx context.Context, name string, to Dir, newName string) error
	// RemoveFile removes an entry that isn't a directory. One that is absent is ENOENT.
	RemoveFile(ctx context.Context, name string) error
	// RemoveDir removes an empty directory. One that is absent is ENOENT.
	RemoveDir(ctx context.Context, name string) error
}

// RegularFile is an open file. It is used by one goroutine at a time.
type RegularFile interface {
	// ReadAt reads from an offset on, at least one byte, and none at the end.
	ReadAt(ctx context.Context, into []byte, offset int64) (int, error)
	// WriteAt writes all of the data. It survives a crash of the server once Sync has returned nil.
	WriteAt(ctx context.Context, data []byte, offset int64) error
	// Truncate gives the file a size: it loses its end, or gets a hole there.
	Truncate(ctx context.Context, size int64) error
	// Sync returns once all that was written is on the server's disk. ErrLost says that some of it may
	// be lost: the server was started again since.
	Sync(ctx context.Context) error
	// Close closes the file.
	Close() error
}

// Type is the type of an entry.
type Type int

// Types. An entry of a listing may be Unknown: ask Lookup.
const (
	Unknown Type = iota
	Directory
	File
	Symlink
	Other
)

// Info describes a file or directory.
type Info struct {
	Type Type
	Access
	// Size of a file, in bytes.
	Size uint64
	// FileSystem and File together identify it on its server.
	FileSystem uint64
	File       uint64
	// Modified is the time of the last change of its content, by the server's clock.
	Modified time.Time
}

// Access is an owner and permission bits.
type Access struct {
	UID  uint32
	GID  uint32
	Mode uint32
}

// Entry is one line of a listing.
type Entry struct {
	Name string
	Type Type
	// Next is where the listing continues after this entry.
	Next Cursor
}

// Cursor is a position in the listing of a directory. Its zero value is the beginning.
type Cursor struct {
	Cookie   uint64 `json:"cookie,omitempty"`
	Verifier uint64 `json:"verifier,omitempty"`
}

// Space is the size of a file system, in bytes.
type Space struct {
	Total uint64
	Free  uint64
}

// CheckName is EINVAL for what isn't a single name: it would lead elsewhere.
func CheckName(name string) error {
	switch {
	case name == "" || name == "." || name == "..":
		return syscall.EINVAL
	case strings.ContainsAny(name, "/\x00"):
		return syscall.EINVAL
	default:
		return nil
	}
}
