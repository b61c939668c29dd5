package backend

import "context"

// Recycler empties directories that people made, for volumes with reclaim policy Recycle. It needs
// no StorageBackend: the PersistentVolume names the directory.
type Recycler interface {
	// Recycle removes the content of a directory, for ever, and leaves the directory. It follows no
	// symlink and crosses into no other file system. The caller repeats it after any error, also
	// after a crash.
	//
	// The caller may be a stale leader. So each caller has a token. After a call returned nil, no
	// earlier call with another token removes anything any more. The condition is that the
	// PersistentVolume had that token before this one, and this caller confirmed its own.
	//
	// InProgress says that removal goes on, Conflict that the directory is, or holds, what must not
	// be removed; Invalid and Unavailable are as in Provision.
	Recycle(ctx context.Context, request Recycling) error
}

// Recycling names the directory to empty, and the caller.
type Recycling struct {
	// Volume is the name of the volume object.
	Volume string
	// Server is an NFS server, Path a directory that it exports, MountOptions how
	// nodes mount it.
	Server       string
	Path         string
	MountOptions []string
	// Data identifies the directory's content, as opposed to what earlier claims left there: the
	// same in all calls until it is removed.
	Data string
	// Token of the caller, which the PersistentVolume has.
	Token string
	// Confirm is called before anything that was moved aside is removed, and again before anything
	// is moved there: its error ends the call.
	Confirm func(ctx context.Context) error
}
