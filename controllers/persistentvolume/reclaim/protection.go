package reclaim

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/component-helpers/storage/volume"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/event"
	"github.com/stowage-dev/stowage/internal/patch"
	"github.com/stowage-dev/stowage/internal/provisioned"
	"github.com/stowage-dev/stowage/internal/uses"
	"github.com/stowage-dev/stowage/internal/wrap"
)

// EnsureProtected adds the finalizer to a volume that was created while the admission plug-in
// was off.
func (r *Reclaimer) EnsureProtected(ctx context.Context, pv *corev1.PersistentVolume) (bool, ctrl.Result, error) {
	if !pv.DeletionTimestamp.IsZero() || controllerutil.ContainsFinalizer(pv, uses.VolumeProtection) {
		return false, ctrl.Result{}, nil
	}
	before := pv.DeepCopy()
	controllerutil.AddFinalizer(pv, uses.VolumeProtection)
	return false, ctrl.Result{}, patch.Volume(ctx, r.client, before, pv, "protecting")
}

// RemoveProtection removes the protection of a deleted volume without a bound claim. If a
// person removed the claimRef, the bound claim is about to tie the volume again. For a volume
// that is yet to be reclaimed, the last write removes both finalizers.
func (r *Reclaimer) RemoveProtection(ctx context.Context, pv *corev1.PersistentVolume) (bool, ctrl.Result, error) {
	if pv.DeletionTimestamp.IsZero() || pv.Status.Phase == corev1.VolumeBound || !slices.ContainsFunc(pv.Finalizers, isProtection) {
		return false, ctrl.Result{}, nil
	}
	if kept, err := r.keeps(ctx, pv); kept || err != nil {
		return false, ctrl.Result{}, err
	}
	if !uses.WasClaimed(pv) {
		used, err := uses.UsedByCachedClaim(ctx, r.client, pv)
		if used || err != nil {
			return true, ctrl.Result{}, err
		}
	}
	before := pv.DeepCopy()
	pv.Finalizers = slices.DeleteFunc(pv.Finalizers, isProtection)
	if err := patch.Volume(ctx, r.client, before, pv, "ending the protection of"); err != nil {
		return false, ctrl.Result{}, err
	}
	if controllerutil.ContainsFinalizer(before, volume.PVDeletionInTreeProtectionFinalizer) && provisioned.MayDelete(pv) {
		r.events.Eventf(pv, nil, corev1.EventTypeWarning, event.VolumeFailedDelete, "Delete",
			"volume %s goes, and its storage is still there: nothing in this cluster can remove it, so remove it by hand", pv.Name)
	}
	return false, ctrl.Result{}, nil
}

// isProtection reports whether a finalizer only keeps a volume until no claim is bound to it.
// The finalizer of in-tree deleters would keep a volume for ever: kube-controller-manager has
// no such deleter any more.
func isProtection(finalizer string) bool {
	return finalizer == uses.VolumeProtection || finalizer == volume.PVDeletionInTreeProtectionFinalizer
}

// EnsureReclaimable adds the finalizer to a volume that a driver made which Stowage serves, and
// that lost it, as in a restored backup. Without it nothing would remove its storage.
func (r *Reclaimer) EnsureReclaimable(ctx context.Context, pv *corev1.PersistentVolume) (bool, ctrl.Result, error) {
	if !pv.DeletionTimestamp.IsZero() || pv.Spec.CSI == nil || controllerutil.ContainsFinalizer(pv, reclaimFinalizerOf(pv)) ||
		backend.IsOurs(pv.Spec.CSI.Driver) && !provisioned.Here(pv) {
		return false, ctrl.Result{}, nil
	}
	if made, err := r.drivers.MadeVolume(ctx, pv); !made || err != nil {
		return false, ctrl.Result{}, err
	}
	before := pv.DeepCopy()
	controllerutil.AddFinalizer(pv, reclaimFinalizerOf(pv))
	return false, ctrl.Result{}, patch.Volume(ctx, r.client, before, pv, "keeping")
}

// release removes the reclaim finalizer of a volume without a claim, and that of its protection
// with it: the last write.
func (r *Reclaimer) release(ctx context.Context, pv *corev1.PersistentVolume) error {
	before := pv.DeepCopy()
	if !controllerutil.RemoveFinalizer(pv, reclaimFinalizerOf(pv)) {
		return nil
	}
	if r.scope == reconciler.ClusterScope && pv.Status.Phase != corev1.VolumeBound {
		controllerutil.RemoveFinalizer(pv, uses.VolumeProtection)
	}
	return patch.Volume(ctx, r.client, before, pv, "releasing")
}

// releaseRemoved releases a volume whose storage is gone. Kubernetes removes its own finalizer at about the
// same time: the pass that such a conflict would repeat calls the backend again.
func (r *Reclaimer) releaseRemoved(ctx context.Context, pv *corev1.PersistentVolume) error {
	err := r.release(ctx, pv)
	if !apierrors.IsConflict(err) {
		return err
	}
	current := &corev1.PersistentVolume{}
	if err := r.live.Get(ctx, client.ObjectKeyFromObject(pv), current); err != nil || current.UID != pv.UID {
		return wrap.Error(client.IgnoreNotFound(err), "reading volume %s", pv.Name)
	}
	return r.release(ctx, current)
}
