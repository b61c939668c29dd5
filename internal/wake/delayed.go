package wake

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Delayed adds the requests of a map function to the queue after a delay: one pass then handles
// several changes.
func Delayed(after time.Duration, requests func(context.Context, client.Object) []reconcile.Request) handler.EventHandler {
	enqueue := func(ctx context.Context, object client.Object, queue Queue) {
		for _, request := range requests(ctx, object) {
			queue.AddAfter(request, after)
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, queue Queue) { enqueue(ctx, e.Object, queue) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, queue Queue) { enqueue(ctx, e.ObjectNew, queue) },
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, queue Queue) { enqueue(ctx, e.Object, queue) },
	}
}
