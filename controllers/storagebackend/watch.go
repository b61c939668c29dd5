package storagebackend

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/index"
	"github.com/stowage-dev/stowage/internal/wake"
)

const (
	// countDelay is the delay after a volume was created or deleted, before volumes are counted.
	countDelay = time.Second
	// sumDelay is the delay after a change of one disk's space, before the space of all disks
	// is added up.
	sumDelay = 10 * time.Second
)

// countedLater wakes the backend of a volume that is created or deleted, after a delay: one
// count, and one write, covers many.
func countedLater() handler.EventHandler {
	count := func(object client.Object, queue wake.Queue) {
		for _, name := range index.BackendOf(object.(*corev1.PersistentVolume)) {
			queue.AddAfter(wake.RequestNamed(name), countDelay)
		}
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, queue wake.Queue) { count(e.Object, queue) },
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, queue wake.Queue) { count(e.Object, queue) },
	}
}

// leftLater wakes the backend of a NodeVolume that is gone, after the same delay. A deleted backend waits for that. Nothing else
// that can't wait a minute depends on NodeVolumes: the disks say how full they are.
func leftLater() handler.EventHandler {
	return handler.Funcs{DeleteFunc: func(_ context.Context, e event.DeleteEvent, queue wake.Queue) {
		queue.AddAfter(wake.RequestNamed(e.Object.(*stowagev1alpha1.NodeVolume).Spec.Backend), countDelay)
	}}
}

// localBackends wakes the backends with storage on nodes.
func localBackends(cache client.Reader) handler.MapFunc {
	return func(ctx context.Context, _ client.Object) []reconcile.Request {
		objects := &stowagev1alpha1.StorageBackendList{}
		if err := cache.List(ctx, objects, wake.Unhurried); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "listing backends")
		}
		var requests []reconcile.Request
		for _, object := range objects.Items {
			if object.Spec.Local != nil {
				requests = append(requests, wake.RequestNamed(object.Name))
			}
		}
		return requests
	}
}

// probedSoon wakes the backend of a disk: at once if the disk's readiness changed, else after
// a delay. One write then covers the changes of many disks.
func probedSoon() handler.EventHandler {
	enqueue := func(object client.Object, queue wake.Queue, after time.Duration) {
		queue.AddAfter(wake.RequestNamed(object.(*stowagev1alpha1.NodeDisk).Spec.Backend), after)
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, queue wake.Queue) {
			enqueue(e.Object, queue, countDelay)
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, queue wake.Queue) {
			enqueue(e.Object, queue, countDelay)
		},
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, queue wake.Queue) {
			was, is := readiness(e.ObjectOld), readiness(e.ObjectNew)
			if was != is {
				enqueue(e.ObjectNew, queue, 0)
			} else {
				enqueue(e.ObjectNew, queue, sumDelay)
			}
		},
	}
}

func readiness(object client.Object) string {
	ready := meta.FindStatusCondition(object.(*stowagev1alpha1.NodeDisk).Status.Conditions, stowagev1alpha1.ReadyCondition)
	if ready == nil {
		return ""
	}
	return string(ready.Status) + ready.Message
}
