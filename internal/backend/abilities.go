package backend

import (
	"context"

	"k8s.io/apimachinery/pkg/api/resource"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
)

// Lister is a backend that can tell what it holds of ours, for the audit.
type Lister interface {
	// List returns the volumes that bear the mark of this cluster and this
	// backend, those that are being made or removed included. What bears another
	// mark, or none, isn't listed.
	List(ctx context.Context) ([]Held, error)
}

// PageLister is a Lister that may hold more than one call has time to read.
type PageLister interface {
	Lister
	// ListAfter is List, of volumes whose ids come after this one, in the order of ids.
	// It returns as many as a call has time for, and the id after which the next call
	// goes on: always a later one, and "" once there are no more. A volume that is held
	// from the first of these calls to the last is on one of the pages.
	ListAfter(ctx context.Context, id string) (page []Held, next string, err error)
}

// ListAfter lists a page of what a backend holds. A Lister that has no pages has one.
func ListAfter(ctx context.Context, b Backend, id string) (page []Held, next string, err error) {
	if pages, can := As[PageLister](b); can {
		return pages.ListAfter(ctx, id)
	}
	lister, can := As[Lister](b)
	if !can {
		return nil, "", Invalid.Errorf("this backend can't tell what it holds")
	}
	page, err = lister.List(ctx)
	return page, "", err
}

// Held is a volume that a backend holds.
type Held struct {
	// ID of the volume, for Delete.
	ID string
	// Claim that the volume was made for.
	Claim stowagev1alpha1.ClaimReference
	// Retained is true of what Retain was called for.
	Retained bool
	// Node is where storage was found that the backend itself has no record of any more.
	// Such storage is only shown: Delete doesn't remove it. Empty for all other storage.
	Node string
}

// Remainer is a backend whose storage may be there though its record of it is gone.
type Remainer interface {
	// Remains tells, for people, where data of a volume was found that the backend has no
	// record of; "" where none was found. It changes nothing.
	Remains(ctx context.Context, id string) (place string, err error)
}

// Remains tells where data of a volume was found after Delete; "" where none was.
func Remains(ctx context.Context, b Backend, id string) (place string, err error) {
	remainer, can := As[Remainer](b)
	if !can {
		return "", nil
	}
	return remainer.Remains(ctx, id)
}

// Retainer is a backend that can note that a volume is to be kept though nothing in
// the cluster records it any more. Whatever can List can be asked to Retain.
type Retainer interface {
	// Retain writes down, where the storage is, that the volume with this id is kept
	// because a person wants it, and tells where its data lies. Nothing but Delete
	// removes it from then on, and nobody calls that for a volume that only an audit
	// knows. It can be repeated. NotFound says that there is no such volume, or soon
	// won't be, Conflict that it isn't this backend's; all else is as in Delete.
	Retain(ctx context.Context, id string) (place string, err error)
}

// Retain notes that a volume is to be kept. One that isn't a Retainer is never asked
// what it holds, and needs no note.
func Retain(ctx context.Context, b Backend, id string) (place string, err error) {
	retainer, can := As[Retainer](b)
	if !can {
		return id, nil
	}
	return retainer.Retain(ctx, id)
}

// CapacityReporter is a backend that can tell how much it can hold.
type CapacityReporter interface {
	// Space returns what the storage has, used by whomever.
	Space(ctx context.Context) (Space, error)
}

// Space is how much storage there is, in bytes.
type Space struct {
	Total resource.Quantity
	Used  resource.Quantity
}

// Expander is a backend whose volumes can grow.
type Expander interface {
	// Expand sees to it that the volume with this id has at least this capacity,
	// and tells what it has then: where capacities are advisory, what is asked for.
	// No volume ever shrinks: one that has as much is left as it is. But of what was asked for earlier, and not given, no more is
	// asked for than now. It grows nothing whose owner's record doesn't fit the id.
	// The call is repeated after any error whose outcome isn't known, also after a
	// crash. An error of kind
	//   InProgress   says that work goes on and that the call is to be repeated;
	//   Exhausted    says that there is no room now: the volume is as it was;
	//   NotFound     says that there is no such volume;
	//   Conflict     says that the volume isn't this backend's;
	//   Invalid      says that no repeat helps until something is changed;
	//   Unavailable  says that the storage didn't take the call.
	// After an error of no kind, or of kind InProgress, the volume may have grown or
	// come to grow.
	Expand(ctx context.Context, id string, capacity resource.Quantity) (Expansion, error)
}

// Expansion is what Expand did.
type Expansion struct {
	// Capacity that the volume has, in bytes.
	Capacity resource.Quantity
	// OnNode is true where a node has yet to grow the file system on the volume.
	OnNode bool
	// Advisory is true where the capacity is a label, and no limit. That goes by the
	// volume: what the backend makes now may be of another kind.
	Advisory bool
}

// Expand grows a volume of a backend; one that isn't an Expander answers Invalid.
func Expand(ctx context.Context, b Backend, id string, capacity resource.Quantity) (Expansion, error) {
	expander, can := As[Expander](b)
	if !can {
		return Expansion{}, Invalid.Errorf("volume %s is of a kind that can't grow: create a larger claim and copy the data", id)
	}
	if err := checkCapacity(capacity); err != nil {
		return Expansion{}, err
	}
	return expander.Expand(ctx, id, capacity)
}

// As finds an ability of a backend behind whatever stands before it. It is the one
// place where abilities are asked for: what stands before a backend may offer
// abilities to pass calls on, and has those that the backend itself has.
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
