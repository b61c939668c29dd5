package storagebackend

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/wake"
)

const (
	mebi = 1 << 20
	// sumDelay is how long after the room on a disk changed that of all disks is
	// added up.
	sumDelay = 10 * time.Second
)

// reportCapacity tells how much the backend can hold, where it can say. While the
// storage doesn't answer, what it said last stays; of disks on nodes, those that
// are there count.
func (r *Reconciler) reportCapacity(ctx context.Context, object *stowagev1alpha1.StorageBackend, opened backend.Backend) {
	reporter, can := backend.As[backend.CapacityReporter](opened)
	if !can {
		object.Status.Capacity = nil
		return
	}
	if object.Spec.Local == nil && !meta.IsStatusConditionTrue(object.Status.Conditions, stowagev1alpha1.ReachableCondition) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	space, err := reporter.Space(ctx)
	if err != nil {
		return
	}
	object.Status.Capacity = &stowagev1alpha1.BackendCapacity{Total: rounded(space.Total), Used: rounded(space.Used)}
	if r.storage.Metrics != nil {
		r.storage.Metrics.Filled(object.Name, space)
	}
}

// rounded is a quantity in whole MiB: people read it, and a few bytes more are no
// reason to write. Used rounded up, total would be more than there is.
func rounded(quantity resource.Quantity) *resource.Quantity {
	return resource.NewQuantity(quantity.Value()/mebi*mebi, resource.BinarySI)
}

// probedSoon wakes the backend of a disk: at once where the disk turned good or bad,
// and after a while where its numbers changed, so that those of many are written once.
func probedSoon() handler.EventHandler {
	enqueue := func(object client.Object, queue wake.Queue, after time.Duration) {
		queue.AddAfter(wake.RequestNamed(object.(*stowagev1alpha1.LocalDisk).Spec.Backend), after)
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

// readiness is what a disk's condition Ready says.
func readiness(object client.Object) string {
	ready := meta.FindStatusCondition(object.(*stowagev1alpha1.LocalDisk).Status.Conditions, stowagev1alpha1.ReadyCondition)
	if ready == nil {
		return ""
	}
	return string(ready.Status) + ready.Message
}
