package store

import (
	"context"
	"errors"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// errCancelled is that a volume was deleted while it was made.
var errCancelled = errors.New("the volume is being deleted")

// InFlight are the volumes that are being made: a copy may take hours, and ends at once
// when nobody wants it any more. Its zero value is usable.
type InFlight struct {
	mu  sync.Mutex
	end map[types.UID]context.CancelCauseFunc
}

// Begin returns a context that ends when the volume is deleted.
func (m *InFlight) Begin(ctx context.Context, uid types.UID) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.end == nil {
		m.end = map[types.UID]context.CancelCauseFunc{}
	}
	m.end[uid] = cancel
	return ctx, func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.end, uid)
		cancel(nil)
	}
}

// CancelIfDeleted ends the making of a volume that is being deleted.
func (m *InFlight) CancelIfDeleted(volume client.Object) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if end := m.end[volume.GetUID()]; end != nil && !volume.GetDeletionTimestamp().IsZero() {
		end(errCancelled)
	}
}

// IsCancelled says whether what was made with a context ended because nobody wants it.
func IsCancelled(ctx context.Context) bool { return errors.Is(context.Cause(ctx), errCancelled) }
