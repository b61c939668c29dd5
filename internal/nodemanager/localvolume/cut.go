package localvolume

import (
	"context"
	"errors"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// errUnwanted is that a volume was deleted while it was made.
var errUnwanted = errors.New("the volume is being deleted")

// makings are the volumes that are being made: a copy may take hours, and ends at once
// when nobody wants it any more. Its zero value is usable.
type makings struct {
	mu  sync.Mutex
	end map[types.UID]context.CancelCauseFunc
}

// begin returns a context that ends when the volume is deleted.
func (m *makings) begin(ctx context.Context, uid types.UID) (context.Context, func()) {
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

// heed ends the making of a volume that is being deleted.
func (m *makings) heed(volume client.Object) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if end := m.end[volume.GetUID()]; end != nil && !volume.GetDeletionTimestamp().IsZero() {
		end(errUnwanted)
	}
}

// heedDeletions is a handler that wakes nobody: who is cut short is woken by others.
func (m *makings) heedDeletions() handler.EventHandler {
	return handler.Funcs{
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, _ workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			m.heed(e.ObjectNew)
		},
	}
}

// isCutShort says whether what was made with a context ended because nobody wants it.
func isCutShort(ctx context.Context) bool { return errors.Is(context.Cause(ctx), errUnwanted) }
