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
	// gathering is how long a node is left alone after something became of one of its
	// attachments: what becomes of others meanwhile is looked at in the same pass.
	gathering = 100 * time.Millisecond
	// reportPause is how long after a node was told something it isn't told more, while
	// still more is on its way to it: all of that is told in one write.
	reportPause = 200 * time.Millisecond
	// onItsWay is how long an attachment counts as on its way. What takes longer holds
	// nothing up.
	onItsWay = 5 * time.Second
)

// gathered wakes whom a map function names a moment after what happened.
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

// pauseOf is how long to wait before a node is told what it has; 0 where it is to be told
// now. What it hasn't any more is never kept from it.
func (r *Reconciler) pauseOf(seen *nodeView, plan []attach.Step) time.Duration {
	left := r.reported.Last(seen.Name).Add(reportPause).Sub(seen.Now)
	if left <= 0 || left > reportPause || !isMoreOnItsWay(seen, plan) {
		return 0
	}
	for _, step := range plan {
		if step.Action == attach.Withdraw || step.Action == attach.Delete {
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
