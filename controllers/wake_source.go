package controllers

import (
	"context"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// waking adds claims, or volumes, to their queue from outside of any event: where the
// index found a volume that another claim let go, or a backend has an answer. Its
// zero value wakes nobody.
type waking struct{ queue atomic.Pointer[queue] }

// start is the source that knows the queue. Nobody waits before it runs, because
// no worker does.
func (w *waking) start(_ context.Context, queue queue) error {
	w.queue.Store(&queue)
	return nil
}

func (w *waking) add(name types.NamespacedName) {
	if queue := w.queue.Load(); queue != nil {
		(*queue).Add(reconcile.Request{NamespacedName: name})
	}
}
