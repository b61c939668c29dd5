package backend

import (
	"context"
	"regexp"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
)

// Snapshotter is a backend that can record the content that a volume has at one time.
type Snapshotter interface {
	// CreateSnapshot makes the snapshot with the id in the request, or finds it made. A repeat with
	// the same request has the same outcome. So the caller repeats it after any error with an unknown
	// outcome, also after a crash, and also if the snapshot isn't wanted any more: only the answer has
	// the handle, by which it is deleted. An error of kind
	//   InProgress   says that work goes on and that the call is to be repeated;
	//   Exhausted    says that there is no room now;
	//   Conflict     says that the id is that of another volume's snapshot;
	//   NotFound     says that there is no such volume;
	//   Invalid      says that no repeat helps until something is changed;
	//   Unavailable  says that the storage didn't take the call: an earlier one may have had its effect.
	// Only NotFound and Invalid say that the id has no snapshot, and gets none.
	CreateSnapshot(ctx context.Context, request SnapshotRequest) (*Snapshot, error)

	// DeleteSnapshot removes the snapshot with this handle, for ever, and leaves the volumes that were
	// made from it. A snapshot that doesn't exist is no error. InProgress says that removal goes on,
	// or waits until the snapshot isn't used any more, and that the call is to be repeated.
	DeleteSnapshot(ctx context.Context, handle string) error

	// FindSnapshot returns the snapshot with this handle. NotFound says that there is none,
	// Unavailable that the storage gave no answer.
	FindSnapshot(ctx context.Context, handle string) (*Snapshot, error)
}

// SnapshotRetainer is a Snapshotter that can record that a snapshot is kept though no object in the cluster
// refers to it any more. Each Snapshotter that is a Lister is one.
type SnapshotRetainer interface {
	// RetainSnapshot records, beside the storage, that the snapshot with this handle is kept for a
	// person. From then on only DeleteSnapshot removes it. It can be repeated. NotFound says that there is
	// no such snapshot, or soon won't be, Conflict that it isn't this backend's; all else is as in
	// DeleteSnapshot.
	RetainSnapshot(ctx context.Context, handle string) error
}

// RetainSnapshot records that a snapshot is kept. No audit lists the snapshots of a backend that isn't a
// SnapshotRetainer, and they need no record.
func RetainSnapshot(ctx context.Context, b Backend, handle string) error {
	retainer, can := As[SnapshotRetainer](b)
	if !can {
		return nil
	}
	return retainer.RetainSnapshot(ctx, handle)
}

// SnapshotRequest asks for one snapshot.
type SnapshotRequest struct {
	// ID of the snapshot, made by SnapshotID.
	ID string
	// Owner is the UID of the VolumeSnapshot that it is for.
	Owner types.UID
	// Namespace of the VolumeSnapshot.
	Namespace string
	// Volume is the handle of the volume.
	Volume string
	// Handle that an earlier call returned; empty if none did.
	Handle string
	// Parameters of the VolumeSnapshotClass that only the storage understands.
	Parameters map[string]string
	// Unwanted: the snapshot is deleted as soon as its handle is known. A backend that can delete one
	// that isn't made yet returns the handle without waiting for it. Where nothing was begun, NotFound is an
	// answer, too.
	Unwanted bool
}

// Snapshot is what a backend says of a snapshot.
type Snapshot struct {
	// Handle identifies the snapshot for DeleteSnapshot, and for a Source.
	Handle string
	// Created is the time of which it has the content; zero if the storage doesn't say.
	Created time.Time
	// RestoreSize is the least size of a volume that is made from it; zero if the storage doesn't say.
	RestoreSize resource.Quantity
	// Ready is true once volumes can be made from it.
	Ready bool
}

// SnapshotID is the id of the snapshot of a VolumeSnapshot, the same as csi-snapshotter's: either can
// take over from the other.
func SnapshotID(owner types.UID) string { return "snapshot-" + string(owner) }

// ownSnapshot is the form of an id of which Stowage's own drivers make a name.
var ownSnapshot = regexp.MustCompile(`^snapshot-[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

// IsSnapshotID reports whether a text is an id that SnapshotID makes for a UID of an API server.
func IsSnapshotID(id string) bool { return ownSnapshot.MatchString(id) }

// snapshotOwner is the form of a UID in an id: it goes into names at the storage.
var snapshotOwner = regexp.MustCompile(`^[a-zA-Z0-9-]{1,63}$`)

// Check returns an error of kind Conflict where a request's id is not that of its owner, and of kind
// Invalid where it names no volume.
func (r SnapshotRequest) Check() error {
	switch {
	case !snapshotOwner.MatchString(string(r.Owner)) || r.ID != SnapshotID(r.Owner):
		return Conflict.Errorf("the id %.200q isn't that of the snapshot of the VolumeSnapshot with uid %.200q", r.ID, r.Owner)
	case r.Volume == "":
		return Invalid.Errorf("the snapshot names no volume")
	}
	return nil
}

// SnapshotterOf returns the ability of a backend to make snapshots, or an error of kind Invalid. The
// name is that of its StorageBackend.
func SnapshotterOf(b Backend, name string) (Snapshotter, error) {
	snapshotter, can := As[Snapshotter](b)
	if !can {
		return nil, Invalid.Errorf("StorageBackend %s can't make snapshots", name)
	}
	return snapshotter, nil
}
