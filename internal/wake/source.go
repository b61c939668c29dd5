package wake

import (
	"context"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Queue is the queue of a controller.
type Queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// Source adds claims, or volumes, to their queue from outside of any event: where the
// index found a volume that another claim let go, or a backend has an answer. Its
// zero value wakes nobody.
type Source struct{ queue atomic.Pointer[Queue] }

// Start is the source that knows the queue. Nobody waits before it runs, because
// no worker does.
func (w *Source) Start(_ context.Context, queue Queue) error {
	w.queue.Store(&queue)
	return nil
}

// Add has an object reconciled now. Before Start it does nothing.
func (w *Source) Add(name types.NamespacedName) {
	if queue := w.queue.Load(); queue != nil {
		(*queue).Add(reconcile.Request{NamespacedName: name})
	}
}
