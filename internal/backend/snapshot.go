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

// GroupSnapshotter is a backend that can record the content that several volumes have at one time.
type GroupSnapshotter interface {
	// CreateGroupSnapshot makes a snapshot of each volume in the request, all of one time, or finds them made. Repeats
	// and errors are as those of CreateSnapshot.
	CreateGroupSnapshot(ctx context.Context, request GroupSnapshotRequest) (*GroupSnapshot, error)

	// DeleteGroupSnapshot removes the group snapshot with this handle, with the snapshots of these handles, which are
	// all of its members, for ever. All else is as in DeleteSnapshot.
	DeleteGroupSnapshot(ctx context.Context, handle string, members []string) error

	// FindGroupSnapshot returns the group snapshot with this handle, and members with these handles. Errors are as those
	// of FindSnapshot.
	FindGroupSnapshot(ctx context.Context, handle string, members []string) (*GroupSnapshot, error)
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
	// Volume is the handle of its volume. Empty where the storage doesn't say, or says that another backend made the snapshot.
	Volume string
	// Created is the time of which it has the content; zero if the storage doesn't say.
	Created time.Time
	// RestoreSize is the least size of a volume that is made from it; zero if the storage doesn't say.
	RestoreSize resource.Quantity
	// Ready is true once volumes can be made from it.
	Ready bool
	// Made is true if FindSnapshot found that this backend made it, for this cluster. False also where the storage doesn't
	// say: then the backend may still use the snapshot, which a person names.
	Made bool
	// Group is what FindSnapshot says of the group snapshot that it was made with: its handle. DeleteGroupSnapshot
	// deletes it, and DeleteSnapshot must not. Empty for none, and where the storage doesn't say.
	Group string
}

// GroupSnapshotRequest asks for snapshots of one time.
type GroupSnapshotRequest struct {
	// ID of the group snapshot, made by GroupSnapshotID.
	ID string
	// Owner is the UID of the VolumeGroupSnapshot that it is for.
	Owner types.UID
	// Volumes are the handles of the volumes: no two are the same.
	Volumes []string
	// Parameters of the VolumeGroupSnapshotClass that only the storage understands.
	Parameters map[string]string
}

// GroupSnapshot is what a backend says of a group snapshot.
type GroupSnapshot struct {
	// Handle identifies it for DeleteGroupSnapshot.
	Handle string
	// Created is the time of which it has the content; zero if the storage doesn't say.
	Created time.Time
	// Ready is true once volumes can be made from all members.
	Ready bool
	// Members are the snapshots, one of each volume.
	Members []Snapshot
}

// MaxGroup is how many volumes a group snapshot may have: its object has each handle, and the API server's limit is
// 1.5 MiB.
const MaxGroup = 1000

// GroupSnapshotID is the id of the group snapshot of a VolumeGroupSnapshot, the same as csi-snapshotter's.
func GroupSnapshotID(owner types.UID) string { return "groupsnapshot-" + string(owner) }

// Check returns an error of kind Conflict where a request's id is not that of its owner, and of kind
// Invalid where its volumes can't be those of a group.
func (r GroupSnapshotRequest) Check() error {
	distinct := map[string]bool{}
	for _, volume := range r.Volumes {
		distinct[volume] = true
	}
	switch {
	case !snapshotOwner.MatchString(string(r.Owner)) || r.ID != GroupSnapshotID(r.Owner):
		return Conflict.Errorf("the id %.200q isn't that of the group snapshot of the VolumeGroupSnapshot with uid %.200q", r.ID, r.Owner)
	case len(r.Volumes) == 0 || len(r.Volumes) > MaxGroup:
		return Invalid.Errorf("the group snapshot names %d volumes: select 1 to %d", len(r.Volumes), MaxGroup)
	case len(distinct) < len(r.Volumes) || distinct[""]:
		return Invalid.Errorf("the group snapshot names a volume twice, or one without a handle")
	}
	return nil
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

// GroupSnapshotterOf returns the ability of a backend to make group snapshots, or an error of kind Invalid. The
// name is that of its StorageBackend.
func GroupSnapshotterOf(b Backend, name string) (GroupSnapshotter, error) {
	snapshotter, can := As[GroupSnapshotter](b)
	if !can {
		return nil, Invalid.Errorf("StorageBackend %s can't make snapshots of groups: delete the VolumeGroupSnapshot, and make a VolumeSnapshot of each claim", name)
	}
	return snapshotter, nil
}
