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

// Held is a volume that a backend holds.
type Held struct {
	// ID of the volume, for Delete.
	ID string
	// Claim that the volume was made for.
	Claim stowagev1alpha1.ClaimReference
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

// As finds an ability of a backend behind whatever stands before it. It is the one
// place where abilities are asked for.
func As[Ability any](b Backend) (ability Ability, can bool) {
	for {
		if ability, can = b.(Ability); can {
			return ability, true
		}
		before, wraps := b.(interface{ Unwrap() Backend })
		if !wraps {
			return ability, false
		}
		b = before.Unwrap()
	}
}
