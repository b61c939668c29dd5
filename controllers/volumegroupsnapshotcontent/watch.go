package volumegroupsnapshotcontent

import (
	"context"

	groupsnapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumegroupsnapshot/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/snapshots"
	"github.com/stowage-dev/stowage/internal/wake"
)

// byOthers passes contents that another program changed, and those that are being deleted. What Stowage writes
// itself must not wake: a refused call would be repeated at once, and for ever.
func byOthers() predicate.Funcs {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, now := e.ObjectOld.(*groupsnapshotv1.VolumeGroupSnapshotContent), e.ObjectNew.(*groupsnapshotv1.VolumeGroupSnapshotContent)
		return !now.DeletionTimestamp.IsZero() || !apiequality.Semantic.DeepEqual(ofOthers(before), ofOthers(now))
	}}
}

// ofOthers is a content without what Stowage writes.
func ofOthers(content *groupsnapshotv1.VolumeGroupSnapshotContent) *groupsnapshotv1.VolumeGroupSnapshotContent {
	rest := content.DeepCopy()
	rest.Status, rest.ResourceVersion, rest.ManagedFields = nil, "", nil
	delete(rest.Annotations, snapshots.GroupBeingCreated)
	delete(rest.Annotations, snapshots.Parameters)
	return rest
}

// unsettled returns the contents of a backend's driver that wait for something.
func (r *Reconciler) unsettled(ctx context.Context, object client.Object) []reconcile.Request {
	driver := backend.DriverOf(object.(*stowagev1alpha1.StorageBackend))
	contents := &groupsnapshotv1.VolumeGroupSnapshotContentList{}
	if err := r.client.List(ctx, contents, wake.Unhurried, client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "listing the group contents of a driver", "driver", driver)
	}
	var found []reconcile.Request
	for i := range contents.Items {
		if content := &contents.Items[i]; content.Spec.Driver == driver && !isSettled(content) {
			found = append(found, wake.Request(content))
		}
	}
	return found
}
