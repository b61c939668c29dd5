package persistentvolume

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/internal/bindable"
	"github.com/stowage-dev/stowage/internal/binder"
	"github.com/stowage-dev/stowage/internal/effect"
	"github.com/stowage-dev/stowage/internal/patch"
	"github.com/stowage-dev/stowage/internal/provisioned"
	"github.com/stowage-dev/stowage/internal/uses"
	"github.com/stowage-dev/stowage/internal/wake"
	"github.com/stowage-dev/stowage/internal/wrap"
)

// ensurePhase writes the phase that follows from the volume and its claim. It skips a volume
// that is tied to a claim which is not bound to it yet. The claim's reconciler writes both,
// now or on its next pass.
func (r *Reconciler) ensurePhase(ctx context.Context, pv *corev1.PersistentVolume) (bool, ctrl.Result, error) {
	ref := pv.Spec.ClaimRef
	if ref == nil || ref.UID == "" {
		return r.ensureAvailable(ctx, pv)
	}
	claim, err := r.claimOf(ctx, ref)
	switch {
	case err != nil:
		return false, ctrl.Result{}, err
	case claim == nil:
		return false, ctrl.Result{}, r.release(ctx, pv)
	case claim.Spec.VolumeName == "" && pv.DeletionTimestamp.IsZero():
		return true, ctrl.Result{}, nil
	case claim.Spec.VolumeName == "":
		return r.releaseUnbound(ctx, pv)
	case claim.Spec.VolumeName == pv.Name:
		return false, ctrl.Result{}, r.ensureBound(ctx, pv)
	default:
		return false, ctrl.Result{}, r.unbind(ctx, pv, claim)
	}
}

// ensureAvailable sets a free volume to Available, unless a claim is about to be bound to it:
// the two writes would conflict.
func (r *Reconciler) ensureAvailable(ctx context.Context, pv *corev1.PersistentVolume) (bool, ctrl.Result, error) {
	if pv.Status.Phase != corev1.VolumeAvailable && pv.DeletionTimestamp.IsZero() && r.index.Reserved(pv.Name) {
		return true, ctrl.Result{RequeueAfter: wake.AfterContention}, nil
	}
	return false, ctrl.Result{}, patch.SetPhase(ctx, r.client, pv, corev1.VolumeAvailable, "")
}

// ensureBound sets a volume to Bound. The bind wrote that phase before it wrote the claim. If
// the cache shows another phase, the cache is most likely stale, and a live read has to
// confirm it before the write.
func (r *Reconciler) ensureBound(ctx context.Context, pv *corev1.PersistentVolume) error {
	if pv.Status.Phase == corev1.VolumeBound {
		return nil
	}
	current := &corev1.PersistentVolume{}
	err := r.live.Get(ctx, client.ObjectKeyFromObject(pv), current)
	if err != nil || current.ResourceVersion != pv.ResourceVersion {
		return wrap.Error(client.IgnoreNotFound(err), "reading volume %s", pv.Name)
	}
	return patch.SetPhase(ctx, r.client, pv, corev1.VolumeBound, "")
}

// claimOf finds the claim of a reference. It returns nil if the claim was deleted, even if it
// was recreated under the same name. The cache may not show a new claim yet, so a live read
// confirms that it is gone, or its deletion was watched.
func (r *Reconciler) claimOf(ctx context.Context, ref *corev1.ObjectReference) (*corev1.PersistentVolumeClaim, error) {
	key, claim := client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, &corev1.PersistentVolumeClaim{}
	err := r.client.Get(ctx, key, claim, client.UnsafeDisableDeepCopy)
	switch {
	case err == nil && claim.UID == ref.UID:
		return claim, nil
	case client.IgnoreNotFound(err) != nil:
		return nil, fmt.Errorf("reading claim %s: %w", key, err)
	}
	return r.claims.Of(ctx, ref)
}

// release sets a volume without its claim to Released. Its data stays as it is. The message of a
// Released volume has its undelete window.
func (r *Reconciler) release(ctx context.Context, pv *corev1.PersistentVolume) error {
	if pv.Status.Phase == corev1.VolumeFailed || pv.Status.Phase == corev1.VolumeReleased {
		return nil
	}
	err := patch.SetPhase(ctx, r.client, pv, corev1.VolumeReleased, "")
	if err == nil {
		effect.LogNow(ctx, effect.Released, pv)
	}
	return err
}

// releaseUnbound releases a deleted volume if its claim is not bound to it yet. The claim
// never will be, and each would wait for the other.
//
// A bind may be in flight. It writes the volume's phase before the claim. If the phase is not
// Bound yet, this write makes the bind's phase write conflict. If it is, this writes the claim
// first, so that the bind's last write conflicts.
func (r *Reconciler) releaseUnbound(ctx context.Context, pv *corev1.PersistentVolume) (bool, ctrl.Result, error) {
	ref := pv.Spec.ClaimRef
	claim := &corev1.PersistentVolumeClaim{}
	err := r.live.Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, claim)
	switch {
	case client.IgnoreNotFound(err) != nil:
		return true, ctrl.Result{}, fmt.Errorf("reading claim %s/%s: %w", ref.Namespace, ref.Name, err)
	case uses.MayBeBound(claim, pv):
		return true, ctrl.Result{}, nil
	case pv.Status.Phase == corev1.VolumeBound && claim.UID == ref.UID:
		if err := r.fence(ctx, claim, pv); err != nil {
			return true, ctrl.Result{}, err
		}
	}
	return false, ctrl.Result{}, r.release(ctx, pv)
}

// fence writes to the claim that the volume is being deleted. It changes the resourceVersion
// that a bind needs.
func (r *Reconciler) fence(ctx context.Context, claim *corev1.PersistentVolumeClaim, pv *corev1.PersistentVolume) error {
	before := claim.DeepCopy()
	reason, message := bindable.OldVolume(pv, claim)
	if !bindable.Set(claim, corev1.PersistentVolumeClaimCondition{Status: corev1.ConditionFalse, Reason: reason, Message: message}) {
		return nil
	}
	err := r.client.Status().Patch(ctx, claim, patch.ClaimStatus(before, client.MergeFromWithOptimisticLock{}))
	return wrap.Error(client.IgnoreNotFound(err), "taking volume %s from claim %s/%s", pv.Name, claim.Namespace, claim.Name)
}

// unbind frees a volume that was tied to a claim which took another one. Storage that a
// provisioner made for the claim and no pod used is released, to be reclaimed; what a person
// made becomes available again.
func (r *Reconciler) unbind(ctx context.Context, pv *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) error {
	if provisioned.MadeFor(pv, claim) {
		return r.release(ctx, pv)
	}
	before := pv.DeepCopy()
	if binder.UnbindVolume(pv) {
		err := r.client.Patch(ctx, pv, patch.Fenced(before))
		if err != nil {
			return fmt.Errorf("unbinding volume %s from claim %s/%s: %w", pv.Name, claim.Namespace, claim.Name, err)
		}
	}
	return patch.SetPhase(ctx, r.client, pv, corev1.VolumeAvailable, "")
}
