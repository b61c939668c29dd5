package node

import (
	"context"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/stowage-dev/stowage/internal/attach"
)

const (
	// gathering is the delay of a reconcile after a change of one of a node's attachments: one
	// pass then handles the changes of several.
	gathering = 100 * time.Millisecond
	// reportPause is the pause after a write of volumesAttached while more attachments are in
	// flight: one write then covers all of them.
	reportPause = 200 * time.Millisecond
	// onItsWay is how long an attachment counts as in flight. A slower one delays nothing.
	onItsWay = 5 * time.Second
)

// gathered adds the requests of a map function to the queue after a short delay.
func gathered(whom func(context.Context, client.Object) []reconcile.Request) handler.EventHandler {
	wake := func(ctx context.Context, object client.Object, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		for _, request := range whom(ctx, object) {
			queue.AddAfter(request, gathering)
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			wake(ctx, e.Object, queue)
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			wake(ctx, e.ObjectNew, queue)
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			wake(ctx, e.Object, queue)
		},
	}
}

// pauseOf returns how long to wait before volumesAttached is written; 0 means now. A removal
// from it is never delayed.
func (r *Reconciler) pauseOf(seen *nodeView, plan []attach.Step) time.Duration {
	left := r.reported.Last(seen.Name).Add(reportPause).Sub(seen.Now)
	if left <= 0 || left > reportPause || !isMoreOnItsWay(seen, plan) {
		return 0
	}
	for _, step := range plan {
		if step.Action == attach.UnmarkAttached || step.Action == attach.Delete {
			return 0
		}
	}
	return left
}

func isMoreOnItsWay(seen *nodeView, plan []attach.Step) bool {
	for _, step := range plan {
		if step.Action == attach.Create {
			return true
		}
	}
	for _, attachment := range seen.Attachments {
		object := attachment.Object
		if !object.Status.Attached && object.Status.AttachError == nil && object.DeletionTimestamp.IsZero() &&
			seen.Now.Sub(object.CreationTimestamp.Time) < onItsWay {
			return true
		}
	}
	return false
}
