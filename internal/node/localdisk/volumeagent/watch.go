package volumeagent

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
)

// volumesOfDisk is the volumes that lie on a disk, or are to.
func (r *Reconciler) volumesOfDisk(ctx context.Context, object client.Object) []reconcile.Request {
	list := &stowagev1alpha1.NodeVolumeList{}
	if err := r.Client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		logf.FromContext(ctx).Error(err, "listing the volumes of a disk")
	}
	var volumes []reconcile.Request
	for _, volume := range list.Items {
		if volume.Spec.Backend == object.(*stowagev1alpha1.NodeDisk).Spec.Backend {
			volumes = append(volumes, reconcile.Request{NamespacedName: types.NamespacedName{Name: volume.Name}})
		}
	}
	return volumes
}

// onlyOtherDisks lets pass disks that come, go, are replaced, or turn good or bad,
// and not those whose numbers change.
func onlyOtherDisks() builder.WatchesOption {
	return builder.WithPredicates(predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, now := e.ObjectOld.(*stowagev1alpha1.NodeDisk).Status, e.ObjectNew.(*stowagev1alpha1.NodeDisk).Status
		was := meta.FindStatusCondition(before.Conditions, stowagev1alpha1.ReadyCondition)
		is := meta.FindStatusCondition(now.Conditions, stowagev1alpha1.ReadyCondition)
		return !equality.Semantic.DeepEqual(before.Identity, now.Identity) || is != nil && (was == nil || was.Reason != is.Reason)
	}})
}
