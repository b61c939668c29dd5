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
	// sumDelay is the delay after a change of one disk's space, before the space of all disks
	// is added up.
	sumDelay = 10 * time.Second
)

// reportCapacity sets the backend's capacity, if the backend can report it. While the storage
// does not answer, the last value stays. Of disks on nodes, the existing ones count.
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

// rounded returns a quantity in whole MiB: people read it, and a few bytes are no reason for a
// write. It rounds down, because a total that is rounded up would exceed the space.
func rounded(quantity resource.Quantity) *resource.Quantity {
	return resource.NewQuantity(quantity.Value()/mebi*mebi, resource.BinarySI)
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
