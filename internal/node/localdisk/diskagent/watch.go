package diskagent

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
)

// diskDelay is the time from a change of a volume to the measurement of its disk: many changes
// are measured, and written, once.
const diskDelay = time.Second

// measureLater wakes all disks of the node a moment after a volume came, changed or went:
// backends may share a disk.
func measureLater(disks client.Reader) handler.EventHandler {
	wake := func(ctx context.Context, queue queue) {
		list := &stowagev1alpha1.NodeDiskList{}
		if err := disks.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			// The next periodic reconcile measures them.
			logf.FromContext(ctx).Error(err, "listing disks to measure")
		}
		for _, disk := range list.Items {
			queue.AddAfter(reconcile.Request{NamespacedName: types.NamespacedName{Name: disk.Name}}, diskDelay)
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, _ event.CreateEvent, queue queue) { wake(ctx, queue) },
		UpdateFunc: func(ctx context.Context, _ event.UpdateEvent, queue queue) { wake(ctx, queue) },
		DeleteFunc: func(ctx context.Context, _ event.DeleteEvent, queue queue) { wake(ctx, queue) },
	}
}

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
