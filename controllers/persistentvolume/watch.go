package persistentvolume

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/stowage-dev/stowage/internal/binder"
	"github.com/stowage-dev/stowage/internal/index"
	"github.com/stowage-dev/stowage/internal/wake"
)

// newTies passes claims that are created or deleted, and those that name another volume or
// complete their binding. A volume reads nothing else of a claim. In a resync, volumes are
// reconciled without their claims.
var newTies = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	before, after := e.ObjectOld.(*corev1.PersistentVolumeClaim), e.ObjectNew.(*corev1.PersistentVolumeClaim)
	return before.UID != after.UID ||
		before.Spec.VolumeName != after.Spec.VolumeName || binder.Completed(before) != binder.Completed(after) ||
		before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero()
}}

// volumesOfClaim wakes the volumes tied to a claim, the one that it is bound to and any that
// it left. A volume that was untied from a claim may wait for its deletion.
func (r *Reconciler) volumesOfClaim(ctx context.Context, object client.Object) []reconcile.Request {
	volumes, err := index.VolumesFor(ctx, r.client, client.ObjectKeyFromObject(object), wake.Unhurried)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "listing volumes", "claim", client.ObjectKeyFromObject(object))
	}
	requests := wake.Requests(volumes)
	if claim := object.(*corev1.PersistentVolumeClaim); !claim.DeletionTimestamp.IsZero() && claim.Spec.VolumeName != "" {
		requests = append(requests, wake.RequestNamed(claim.Spec.VolumeName))
	}
	return requests
}

// volumeOfNodeVolume wakes the volume that lies in a NodeVolume. While it is made, there is none: its creation wakes it.
func (r *Reconciler) volumeOfNodeVolume(ctx context.Context, object client.Object) []reconcile.Request {
	r.storage.Renew(object.GetName())
	err := r.client.Get(ctx, client.ObjectKey{Name: object.GetName()}, &corev1.PersistentVolume{}, wake.Unhurried, client.UnsafeDisableDeepCopy)
	if apierrors.IsNotFound(err) {
		return nil
	}
	return []reconcile.Request{wake.Request(object)}
}

// volumesOfBackend wakes the volumes of a backend: the undelete window may have changed.
func (r *Reconciler) volumesOfBackend(ctx context.Context, object client.Object) []reconcile.Request {
	volumes := &corev1.PersistentVolumeList{}
	if err := r.client.List(ctx, volumes, client.MatchingFields{index.VolumesByBackend: object.GetName()}, wake.Unhurried); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "listing volumes", "backend", object.GetName())
	}
	return wake.Requests(volumes.Items)
}
