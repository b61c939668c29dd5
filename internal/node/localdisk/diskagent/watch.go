package diskagent

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
)

// measuredLater wakes all disks of the node a moment after a volume came, changed or
// went: backends may share a disk.
func (r *Reconciler) measuredLater() handler.EventHandler {
	wake := func(ctx context.Context, queue queue) {
		disks := &stowagev1alpha1.NodeDiskList{}
		if err := r.Client.List(ctx, disks, client.UnsafeDisableDeepCopy); err != nil {
			// They are looked at again anyhow, only later.
			logf.FromContext(ctx).Error(err, "listing disks to measure")
		}
		for _, disk := range disks.Items {
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
