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

// Source adds claims or volumes to their queue without an event of the API server. For
// example, the index found a released volume, or a backend has an answer. The zero value does
// nothing.
type Source struct{ queue atomic.Pointer[Queue] }

// Start stores the queue. Add loses nothing before Start runs, because no worker runs before
// then.
func (w *Source) Start(_ context.Context, queue Queue) error {
	w.queue.Store(&queue)
	return nil
}

// Add requests that an object is reconciled now. Before Start it does nothing.
func (w *Source) Add(name types.NamespacedName) {
	if queue := w.queue.Load(); queue != nil {
		(*queue).Add(reconcile.Request{NamespacedName: name})
	}
}
