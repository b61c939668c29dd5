package queue

import (
	"context"

	"github.com/stowage-dev/stowage/internal/backend"
)

// existing has calls about existing disks made in turn, as those about volumes. It has no
// other method.
type existing struct{ on *served }

// Existing attaches existing disks, where the backend inside does.
func (s *served) Existing() backend.Attacher { return existing{s} }

// Attach asks for an existing disk on a node.
func (e existing) Attach(ctx context.Context, request backend.AttachRequest) (backend.Attachment, error) {
	attacher, err := e.inside()
	if err != nil {
		return backend.Attachment{}, err
	}
	return e.on.askToAttach(ctx, attacher, request)
}

// Detach asks for an existing disk to be taken from a node.
func (e existing) Detach(ctx context.Context, id string, node backend.NodeIdentity) error {
	attacher, err := e.inside()
	if err != nil {
		return err
	}
	return e.on.askToDetach(ctx, attacher, id, node)
}

// IsAttached asks whether a node has an existing disk.
func (e existing) IsAttached(ctx context.Context, id string, node backend.NodeIdentity) (bool, error) {
	attacher, err := e.inside()
	if err != nil {
		return false, err
	}
	return e.on.askWhetherAttached(ctx, attacher, id, node)
}

func (e existing) inside() (backend.Attacher, error) {
	attacher, can := backend.As[backend.ExistingAttacher](e.on.Backend)
	if !can {
		return nil, backend.Invalid.Errorf("%s doesn't attach existing disks", e.on.lane.Backend)
	}
	return attacher.Existing(), nil
}
