package store

import (
	"context"
	"errors"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// errCancelled is the cause of a context that a deletion cancelled.
var errCancelled = errors.New("the volume is being deleted")

// InFlight are the volumes that are being made. A deletion cancels that: a copy may take hours.
// Its zero value is usable. All methods are safe for concurrent use.
type InFlight struct {
	mu     sync.Mutex
	cancel map[types.UID]context.CancelCauseFunc
}

// Begin returns a context that CancelIfDeleted cancels until end is called.
func (m *InFlight) Begin(ctx context.Context, uid types.UID) (making context.Context, end func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.cancel == nil {
		m.cancel = map[types.UID]context.CancelCauseFunc{}
	}
	m.cancel[uid] = cancel
	return ctx, func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.cancel, uid)
		cancel(nil)
	}
}

// CancelIfDeleted cancels the making of a volume that is being deleted.
func (m *InFlight) CancelIfDeleted(volume client.Object) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if cancel := m.cancel[volume.GetUID()]; cancel != nil && !volume.GetDeletionTimestamp().IsZero() {
		cancel(errCancelled)
	}
}

// IsCancelled reports whether a deletion cancelled a context of Begin.
func IsCancelled(ctx context.Context) bool { return errors.Is(context.Cause(ctx), errCancelled) }
