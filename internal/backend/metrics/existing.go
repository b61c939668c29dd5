package metrics

import (
	"context"
	"time"

	"github.com/stowage-dev/stowage/internal/backend"
)

// existing measures calls about existing disks, as those about volumes. It has no other
// method.
type existing struct{ of *measured }

// Existing attaches existing disks, where the backend inside does.
func (m *measured) Existing() backend.Attacher { return existing{m} }

// Attach measures a call of Attach.
func (e existing) Attach(ctx context.Context, request backend.AttachRequest) (backend.Attachment, error) {
	attacher, can := backend.As[backend.ExistingAttacher](e.of.Backend)
	if !can {
		return backend.Attachment{}, notAttaching(e.of.name)
	}
	began := time.Now()
	attached, err := attacher.Existing().Attach(ctx, request)
	e.of.observe("attach", began, err)
	return attached, err
}

// Detach measures a call of Detach.
func (e existing) Detach(ctx context.Context, id string, node backend.NodeIdentity) error {
	attacher, can := backend.As[backend.ExistingAttacher](e.of.Backend)
	if !can {
		return notAttaching(e.of.name)
	}
	began := time.Now()
	err := attacher.Existing().Detach(ctx, id, node)
	e.of.observe("detach", began, err)
	return err
}

// IsAttached measures a call of IsAttached.
func (e existing) IsAttached(ctx context.Context, id string, node backend.NodeIdentity) (bool, error) {
	attacher, can := backend.As[backend.ExistingAttacher](e.of.Backend)
	if !can {
		return false, notAttaching(e.of.name)
	}
	began := time.Now()
	is, err := attacher.Existing().IsAttached(ctx, id, node)
	e.of.observe("is-attached", began, err)
	return is, err
}
