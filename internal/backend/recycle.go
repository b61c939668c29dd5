package backend

import "context"

// Recycler empties directories that people made, for volumes whose reclaim policy
// is Recycle. It needs no StorageBackend: the volume object says where they are.
type Recycler interface {
	// Recycle removes all that a directory holds, for ever, and leaves the
	// directory. It follows no symlink and crosses into no other file system. It is
	// repeated after any error, also after a crash.
	//
	// Whoever calls it may be one of two who take themselves for the leader, and late.
	// So each has a token: after a call returned nil, no earlier call with another
	// token removes anything any more, if the volume object was given that token
	// before this one, and confirmed by it.
	//
	// InProgress says that removal goes on, Conflict that the directory is, or holds,
	// what isn't to be removed; Invalid and Unavailable are as in Provision.
	Recycle(ctx context.Context, wanted Recycling) error
}

// Recycling says what is to be emptied, and by whom.
type Recycling struct {
	// Volume is the name of the volume object.
	Volume string
	// Server is an NFS server, Path a directory that it exports, MountOptions how
	// nodes mount it.
	Server       string
	Path         string
	MountOptions []string
	// Data tells what lies in the directory from what other claims left there before: the
	// same in all calls until it is removed.
	Data string
	// Token of the caller, which the volume object bears.
	Token string
	// Confirm is called before anything is removed that was moved aside, and again
	// before anything is moved there: its error ends the call.
	Confirm func(ctx context.Context) error
}
