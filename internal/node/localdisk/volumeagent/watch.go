package volumeagent

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/node/localdisk/store"
)

// cancelDeleted cancels the making of a volume that is deleted. It wakes no volume: another
// watch does that.
func cancelDeleted(making *store.InFlight) handler.EventHandler {
	return handler.Funcs{
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, _ workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			making.CancelIfDeleted(e.ObjectNew)
		},
	}
}

// volumesOfDisk maps a NodeDisk to the volumes of its backend.
func volumesOfDisk(volumes client.Reader) handler.MapFunc {
	return func(ctx context.Context, object client.Object) []reconcile.Request {
		return volumesWhere(ctx, volumes, func(volume *stowagev1alpha1.NodeVolume) bool {
			return volume.Spec.Backend == object.(*stowagev1alpha1.NodeDisk).Spec.Backend
		})
	}
}

// pendingRoom returns the volumes that found their disk full.
func pendingRoom(ctx context.Context, volumes client.Reader) []reconcile.Request {
	return volumesWhere(ctx, volumes, func(volume *stowagev1alpha1.NodeVolume) bool {
		return slices.ContainsFunc(volume.Status.Conditions, func(condition metav1.Condition) bool { return condition.Reason == stowagev1alpha1.ReasonExhausted })
	})
}

// volumesWhere returns the node's volumes that match. An error delays them until the next
// periodic reconcile.
func volumesWhere(ctx context.Context, volumes client.Reader, matches func(*stowagev1alpha1.NodeVolume) bool) []reconcile.Request {
	list := &stowagev1alpha1.NodeVolumeList{}
	if err := volumes.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		logf.FromContext(ctx).Error(err, "listing volumes to reconcile")
	}
	var found []reconcile.Request
	for i := range list.Items {
		if matches(&list.Items[i]) {
			found = append(found, reconcile.Request{NamespacedName: types.NamespacedName{Name: list.Items[i].Name}})
		}
	}
	return found
}

// changedDisks passes NodeDisks that come, go, are replaced, or have another reason in
// Ready. Their usage changes all the time, and concerns no volume.
func changedDisks() builder.WatchesOption {
	return builder.WithPredicates(predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, now := e.ObjectOld.(*stowagev1alpha1.NodeDisk).Status, e.ObjectNew.(*stowagev1alpha1.NodeDisk).Status
		was := meta.FindStatusCondition(before.Conditions, stowagev1alpha1.ReadyCondition)
		is := meta.FindStatusCondition(now.Conditions, stowagev1alpha1.ReadyCondition)
		return !equality.Semantic.DeepEqual(before.Identity, now.Identity) || is != nil && (was == nil || was.Reason != is.Reason)
	}})
}
