package volumegroupsnapshot

import (
	"context"

	groupsnapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumegroupsnapshot/v1"
	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/stowage-dev/stowage/internal/snapshots"
	"github.com/stowage-dev/stowage/internal/wake"
)

// groupOfContent wakes the VolumeGroupSnapshot that a content names.
func groupOfContent(_ context.Context, object client.Object) []reconcile.Request {
	ref := object.(*groupsnapshotv1.VolumeGroupSnapshotContent).Spec.VolumeGroupSnapshotRef
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}}}
}

// groupsOfSnapshot wakes the group of a deleted member that waits, and the groups that may adopt a VolumeSnapshot.
func (r *Reconciler) groupsOfSnapshot(ctx context.Context, object client.Object) []reconcile.Request {
	snapshot := object.(*snapshotv1.VolumeSnapshot)
	switch owner := snapshots.Group(snapshot); {
	case owner != nil && isWaiting(snapshot):
		return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: snapshot.Namespace, Name: owner.Name}}}
	case isAdoptable(snapshot):
		return r.groups(ctx, snapshot.Namespace, isStatic)
	}
	return nil
}

// newClaims passes claims that are created, bound or deleted, or whose labels change.
func newClaims() builder.WatchesOption {
	return builder.WithPredicates(predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, now := e.ObjectOld.(*corev1.PersistentVolumeClaim), e.ObjectNew.(*corev1.PersistentVolumeClaim)
		return before.UID != now.UID || before.Status.Phase != now.Status.Phase || !apiequality.Semantic.DeepEqual(before.Labels, now.Labels)
	}})
}

// groupsOfClaim wakes the groups that wait for claims.
func (r *Reconciler) groupsOfClaim(ctx context.Context, object client.Object) []reconcile.Request {
	return r.groups(ctx, object.GetNamespace(), func(group *groupsnapshotv1.VolumeGroupSnapshot) bool {
		return boundContent(group) == "" || !group.DeletionTimestamp.IsZero()
	})
}

// groups returns the VolumeGroupSnapshots of a namespace for which wakes is true.
func (r *Reconciler) groups(ctx context.Context, namespace string, wakes func(*groupsnapshotv1.VolumeGroupSnapshot) bool) []reconcile.Request {
	all := &groupsnapshotv1.VolumeGroupSnapshotList{}
	if err := r.client.List(ctx, all, client.InNamespace(namespace), wake.Unhurried, client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "listing the VolumeGroupSnapshots of a namespace")
	}
	var found []reconcile.Request
	for i := range all.Items {
		if group := &all.Items[i]; wakes(group) {
			found = append(found, wake.Request(group))
		}
	}
	return found
}
