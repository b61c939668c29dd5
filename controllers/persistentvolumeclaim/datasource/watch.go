package datasource

import (
	"context"
	"fmt"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/stowage-dev/stowage/internal/index"
	"github.com/stowage-dev/stowage/internal/provisioned"
	"github.com/stowage-dev/stowage/internal/wake"
)

// ClaimsCopying wakes the claims that wait for the source of their clone.
func (f *Finder) ClaimsCopying(ctx context.Context, copied client.Object) []reconcile.Request {
	return f.claimsOf(ctx, provisioned.ClaimKind, client.ObjectKeyFromObject(copied))
}

// WatchSnapshots makes VolumeSnapshots and their contents wake, from now on, the claims that are to be
// restored from them. Before, the API server must serve both: a controller with a watch that fails ends.
func (f *Finder) WatchSnapshots(from cache.Cache, claims controller.Controller) error {
	wakes := handler.EnqueueRequestsFromMapFunc(f.claimsRestoring)
	for _, object := range []client.Object{&snapshotv1.VolumeSnapshot{}, &snapshotv1.VolumeSnapshotContent{}} {
		if err := claims.Watch(source.Kind(from, object, wakes)); err != nil {
			return fmt.Errorf("watching %T: %w", object, err)
		}
	}
	return nil
}

// claimsRestoring wakes the claims that are to be restored from a VolumeSnapshot, or from that of a content.
func (f *Finder) claimsRestoring(ctx context.Context, object client.Object) []reconcile.Request {
	snapshot := client.ObjectKeyFromObject(object)
	if content, is := object.(*snapshotv1.VolumeSnapshotContent); is {
		snapshot = client.ObjectKey{Namespace: content.Spec.VolumeSnapshotRef.Namespace, Name: content.Spec.VolumeSnapshotRef.Name}
	}
	return f.claimsOf(ctx, provisioned.SnapshotKind, snapshot)
}

// claimsOf returns the unbound claims with a source.
func (f *Finder) claimsOf(ctx context.Context, kind string, of client.ObjectKey) []reconcile.Request {
	claims := &corev1.PersistentVolumeClaimList{}
	err := f.client.List(ctx, claims, client.MatchingFields{index.ClaimsBySource: index.SourceKey(kind, of)}, wake.Unhurried)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "listing the claims with a source", "kind", kind, "source", of)
	}
	return wake.Requests(claims.Items)
}

// NewPhases passes claims that are created or deleted, or have a new phase.
var NewPhases = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	before, after := e.ObjectOld.(*corev1.PersistentVolumeClaim), e.ObjectNew.(*corev1.PersistentVolumeClaim)
	return before.UID != after.UID || before.Status.Phase != after.Status.Phase
}}
