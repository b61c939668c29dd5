package volumesnapshot

import (
	"context"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/stowage-dev/stowage/internal/index"
	"github.com/stowage-dev/stowage/internal/provisioned"
	"github.com/stowage-dev/stowage/internal/snapshots"
	"github.com/stowage-dev/stowage/internal/wake"
)

// snapshotOfContent wakes the VolumeSnapshot that a content names.
func snapshotOfContent(_ context.Context, object client.Object) []reconcile.Request {
	ref := object.(*snapshotv1.VolumeSnapshotContent).Spec.VolumeSnapshotRef
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}}}
}

// newClaims passes claims that are bound, created or deleted, or whose protection for snapshots changes.
func newClaims() builder.WatchesOption {
	return builder.WithPredicates(predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, now := e.ObjectOld.(*corev1.PersistentVolumeClaim), e.ObjectNew.(*corev1.PersistentVolumeClaim)
		return before.UID != now.UID || before.Status.Phase != now.Status.Phase || isKeptForSnapshots(before) != isKeptForSnapshots(now)
	}})
}

func isKeptForSnapshots(claim *corev1.PersistentVolumeClaim) bool {
	return controllerutil.ContainsFinalizer(claim, snapshots.ClaimProtection)
}

// snapshotsOfClaim wakes the VolumeSnapshot that a claim is restored from, those that wait for the claim, and those that
// keep it.
func (r *Reconciler) snapshotsOfClaim(ctx context.Context, object client.Object) []reconcile.Request {
	claim := object.(*corev1.PersistentVolumeClaim)
	of := &snapshotv1.VolumeSnapshotList{}
	err := r.client.List(ctx, of, client.InNamespace(claim.Namespace), client.MatchingFields{index.SnapshotsByClaim: claim.Name},
		wake.Unhurried, client.UnsafeDisableDeepCopy)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "listing the VolumeSnapshots of a claim")
	}
	var found []reconcile.Request
	for i := range of.Items {
		if snapshot := &of.Items[i]; !snapshots.IsReady(snapshot) || isKeptForSnapshots(claim) {
			found = append(found, wake.Request(snapshot))
		}
	}
	if _, source, has := provisioned.SourceKey(claim); has && provisioned.IsSnapshot(provisioned.DataSource(claim)) {
		found = append(found, reconcile.Request{NamespacedName: source})
	}
	return found
}
