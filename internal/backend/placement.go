package backend

import "context"

// Placer is a backend that has to be called with the same placement again.
type Placer interface {
	// Place chooses the placement of a request. It calls no storage. Nil: the storage knows no places.
	// Kinds of errors are those of Provision.
	Place(ctx context.Context, request Request) (*Placement, error)
}

// Place chooses the placement of a request; nil for a backend that isn't a Placer.
func Place(ctx context.Context, b Backend, request Request) (*Placement, error) {
	placer, can := As[Placer](b)
	if !can {
		return nil, nil //nolint:nilnil // there is nothing to choose
	}
	return placer.Place(ctx, request)
}
