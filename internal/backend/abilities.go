package backend

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
)

// Lister is a backend that can list the volumes and snapshots that it holds, for the audit.
type Lister interface {
	// List returns the volumes and snapshots with an owner record of this cluster and this backend, also
	// those that are being made or removed. It doesn't list those with another record, or none.
	List(ctx context.Context) ([]Held, error)
}

// PageLister is a Lister that may hold more than one call has time to read.
type PageLister interface {
	Lister
	// ListAfter is List for what has an id after this one, in the order of ids. It returns as
	// many as a call has time for, and the id after which the next call continues. That is always a
	// later one, and "" at the end. What is held from the first of these calls to the last
	// is on one of the pages.
	ListAfter(ctx context.Context, id string) (page []Held, next string, err error)
}

// ListAfter lists a page of what a backend holds. A Lister without pages has one.
func ListAfter(ctx context.Context, b Backend, id string) (page []Held, next string, err error) {
	if pages, can := As[PageLister](b); can {
		return pages.ListAfter(ctx, id)
	}
	lister, can := As[Lister](b)
	if !can {
		return nil, "", Invalid.Errorf("this backend can't list its volumes")
	}
	page, err = lister.List(ctx)
	return page, "", err
}

// Held is a volume, or a snapshot, that a backend holds.
type Held struct {
	// ID of the volume, for Delete; of a snapshot its handle, for DeleteSnapshot.
	ID string
	// Claim that the volume was made for. Of a snapshot it is that of its volume, if the storage says.
	Claim stowagev1alpha1.ClaimReference
	// Snapshot is the UID of the VolumeSnapshot that a snapshot was made for. Empty for volumes.
	Snapshot types.UID
	// Retained is true after Retain, or RetainSnapshot.
	Retained bool
	// Node is the node on which storage without a record was found. Such storage is only reported:
	// Delete doesn't remove it. Empty for all other storage.
	Node string
}

// Remainer is a backend that can hold storage of which the record is gone.
type Remainer interface {
	// Remains returns, for people, where data of a volume without a record was found; "" where none
	// was found. It changes nothing.
	Remains(ctx context.Context, id string) (place string, err error)
}

// Remains returns where data of a volume was found after Delete; "" where none was.
func Remains(ctx context.Context, b Backend, id string) (place string, err error) {
	remainer, can := As[Remainer](b)
	if !can {
		return "", nil
	}
	return remainer.Remains(ctx, id)
}

// Retainer is a backend that can record that a volume is kept though no object in the cluster
// refers to it any more. Each Lister is a Retainer.
type Retainer interface {
	// Retain records, beside the storage, that the volume with this id is kept for a person, and
	// returns where its data is. From then on only Delete removes it, which is never called for a
	// volume that only an audit found. Retain can be repeated. NotFound says that there is no such
	// volume, or soon won't be, Conflict that it isn't this backend's; all else is as in Delete.
	Retain(ctx context.Context, id string) (place string, err error)
}

// Retain records that a volume is kept. A backend that isn't a Retainer is never audited, and needs
// no record.
func Retain(ctx context.Context, b Backend, id string) (place string, err error) {
	retainer, can := As[Retainer](b)
	if !can {
		return id, nil
	}
	return retainer.Retain(ctx, id)
}

// Undoer is a backend that finds what an unfinished Provision made only by repeating it: a volume's
// id is part of the answer (csi).
type Undoer interface {
	// Undo makes sure that the storage of a Provision with this request doesn't exist, and never
	// will. The request is the same as that of the Provision. InProgress says that the call is to be
	// repeated until it returns nil; other kinds are as for Delete. An error of kind Invalid says
	// that something must be changed first: the storage may still exist.
	Undo(ctx context.Context, request Request) error
}

// Undo removes what an unfinished Provision made. A backend that isn't an Undoer finds it by the id
// in the request.
func Undo(ctx context.Context, b Backend, request Request) error {
	if undoer, can := As[Undoer](b); can {
		return undoer.Undo(ctx, request)
	}
	return b.Delete(ctx, request.ID)
}

// CapacityReporter is a backend that can report how much it can hold.
type CapacityReporter interface {
	// Space returns the size of the storage, and how much of it is used, by Stowage or others.
	Space(ctx context.Context) (Space, error)
}

// Space is how much storage there is, in bytes.
type Space struct {
	Total resource.Quantity
	Used  resource.Quantity
}

// Expander is a backend with volumes that can grow.
type Expander interface {
	// Expand makes a volume have at least the capacity in the request, and returns what it has
	// then: where capacities are advisory, what is requested. No volume ever shrinks: one that has
	// as much stays as it is. But a smaller request replaces an earlier one that was not met. A
	// volume with an owner record that doesn't fit the id doesn't grow. The caller repeats the call
	// after any error with an unknown outcome, also after a crash. An error of kind
	//   InProgress   says that work goes on and that the call is to be repeated;
	//   Exhausted    says that there is no room now: the volume is as it was;
	//   NotFound     says that there is no such volume;
	//   Conflict     says that the volume isn't this backend's;
	//   Invalid      says that no repeat helps until something is changed;
	//   Unavailable  says that the storage didn't take the call.
	// After an error of no kind, or of kind InProgress, the volume may have grown or may still grow.
	Expand(ctx context.Context, request ExpandRequest) (Expansion, error)
}

// ExpandRequest asks for a larger volume.
type ExpandRequest struct {
	// ID of the volume in the backend.
	ID string
	// Volume is the PersistentVolume: its modes go to a CSI driver. Nil for a volume without one.
	Volume *corev1.PersistentVolume
	// Capacity is the least that the volume must have, in bytes.
	Capacity resource.Quantity
}

// Expansion is the outcome of Expand.
type Expansion struct {
	// Capacity that the volume has, in bytes.
	Capacity resource.Quantity
	// OnNode is true where a node has yet to grow the file system on the volume.
	OnNode bool
	// Advisory is true where the capacity is a label, and no limit. It is a property of the volume:
	// what the backend makes now may be of another kind.
	Advisory bool
}

// Expand grows a volume of a backend; one that isn't an Expander answers Invalid.
func Expand(ctx context.Context, b Backend, request ExpandRequest) (Expansion, error) {
	expander, can := As[Expander](b)
	if !can {
		return Expansion{}, Invalid.Errorf("volume %s is of a kind that can't grow: create a larger claim and copy the data", request.ID)
	}
	if err := checkCapacity(request.Capacity); err != nil {
		return Expansion{}, err
	}
	return expander.Expand(ctx, request)
}

// As finds an ability of a backend behind its wrappers, and is the only place that does. A wrapper
// may pass on calls of more abilities than its backend has: only those of the backend count.
func As[Ability any](b Backend) (ability Ability, can bool) {
	before, wraps := b.(interface{ Unwrap() Backend })
	if !wraps {
		ability, can = b.(Ability)
		return ability, can
	}
	if ability, can = As[Ability](before.Unwrap()); !can {
		return ability, false
	}
	if passing, passes := b.(Ability); passes {
		return passing, true
	}
	return ability, true
}
