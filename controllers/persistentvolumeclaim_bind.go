package controllers

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/stowage-dev/stowage/internal/binder"
)

// findBoundVolume finds the volume of a claim that was bound before, and calls
// the claim Lost where the volume is gone or another's. The cache may be behind
// the binding: before anything is called lost, the volume is read live. What it
// finds may share memory with the cache: it is not to be changed.
func (r *PersistentVolumeClaimReconciler) findBoundVolume(ctx context.Context, scope *claimScope) (*wait, error) {
	claim := scope.claim
	key := client.ObjectKey{Name: claim.Spec.VolumeName}
	for _, reader := range []client.Reader{r.client, r.live} {
		pv := &corev1.PersistentVolume{}
		err := reader.Get(ctx, key, pv, client.UnsafeDisableDeepCopy)
		switch {
		case apierrors.IsNotFound(err):
			scope.volume = nil
		case err != nil:
			return nil, fmt.Errorf("reading volume %s: %w", key.Name, err)
		default:
			scope.volume = pv
		}
		if scope.volume != nil && binder.TiedTo(scope.volume, claim) {
			return nil, nil
		}
	}
	switch {
	case scope.volume == nil:
		return waitForLostVolume(claim), nil
	case scope.volume.Spec.ClaimRef == nil || binder.ReservedFor(scope.volume, claim):
		return nil, nil
	default:
		return waitForMisboundVolume(claim, scope.volume), nil
	}
}

// holdVolume ties a deleted claim's volume to it again where somebody untied it: the
// data is the claim's until its end, and Released then, not anybody's.
func (r *PersistentVolumeClaimReconciler) holdVolume(ctx context.Context, scope *claimScope) (*wait, error) {
	if !binder.Completed(scope.claim) {
		return nil, nil
	}
	waiting, err := r.findBoundVolume(ctx, scope)
	if waiting != nil || err != nil {
		// What is lost keeps no claim from going.
		return nil, err
	}
	_, err = r.bindVolume(ctx, scope.volume, scope.claim)
	return nil, err
}

// bind ties volume and claim to each other, in four writes of which each is left
// out where it already holds, so that a crash after any of them is resumed:
//
//  1. the volume's claimRef with the claim's UID: the point of no return;
//  2. the volume's phase;
//  3. the claim's volumeName, and with it the end of provisioning;
//  4. the claim's phase and what it got.
func (r *PersistentVolumeClaimReconciler) bind(ctx context.Context, scope *claimScope) (*wait, error) {
	claim := scope.claim
	pv, err := r.bindVolume(ctx, scope.volume, claim)
	if err != nil {
		r.index.GiveBack(scope.volume.Name, claim.UID)
		return nil, err
	}
	if pv, err = r.setVolumeBound(ctx, pv); err != nil {
		return nil, err
	}
	if err := r.bindClaim(ctx, claim, pv); err != nil {
		return nil, err
	}
	return nil, r.setClaimBound(ctx, claim, pv)
}

// bindVolume returns the volume as it is then. The one that it is given may be the
// cache's and the index's own, and is not changed.
func (r *PersistentVolumeClaimReconciler) bindVolume(ctx context.Context, pv *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) (*corev1.PersistentVolume, error) {
	tied := *pv
	tied.Annotations = maps.Clone(pv.Annotations)
	changed := binder.BindVolume(&tied, claim)
	if r.scope == ClusterScope && pv.DeletionTimestamp.IsZero() && (changed || !binder.Completed(claim)) {
		// In this very write, and also where a person tied the volume to the claim: a
		// volume that goes before it is protected goes from its claim.
		tied.Finalizers = slices.Clone(pv.Finalizers)
		changed = controllerutil.AddFinalizer(&tied, pvProtectionFinalizer) || changed
	}
	if !changed {
		return pv, nil
	}
	written := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: pv.Name}}
	// The resourceVersion is the fence: of two who read the volume as free,
	// one writes.
	if err := r.client.Patch(ctx, written, claimRefPatch(pv, &tied)); err != nil {
		return nil, fmt.Errorf("binding volume %s to claim %s/%s: %w", pv.Name, claim.Namespace, claim.Name, err)
	}
	return written, nil
}

func (r *PersistentVolumeClaimReconciler) setVolumeBound(ctx context.Context, pv *corev1.PersistentVolume) (*corev1.PersistentVolume, error) {
	if pv.Status.Phase == corev1.VolumeBound {
		return pv, nil
	}
	written := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: pv.Name}}
	if err := r.client.Status().Patch(ctx, written, volumePhasePatch(pv, corev1.VolumeBound, "")); err != nil {
		return nil, fmt.Errorf("setting volume %s to Bound: %w", pv.Name, err)
	}
	return written, nil
}

// bindClaim writes the claim's side, and with it clears the intent of the
// provisioning that made this very volume: the volume object answers for the
// storage from here on.
func (r *PersistentVolumeClaimReconciler) bindClaim(ctx context.Context, claim *corev1.PersistentVolumeClaim, pv *corev1.PersistentVolume) error {
	before := *claim
	before.Annotations, before.Finalizers = maps.Clone(claim.Annotations), slices.Clone(claim.Finalizers)
	changed := binder.BindClaim(claim, pv)
	if pv.Name == volumeIDOf(claim) {
		changed = clearIntent(claim) || changed
	}
	if !changed {
		return nil
	}
	if err := r.client.Patch(ctx, claim, volumeNamePatch(&before, claim)); err != nil {
		return fmt.Errorf("binding claim %s/%s to volume %s: %w", claim.Namespace, claim.Name, pv.Name, err)
	}
	return nil
}

// setClaimBound reports what the claim got.
func (r *PersistentVolumeClaimReconciler) setClaimBound(ctx context.Context, claim *corev1.PersistentVolumeClaim, pv *corev1.PersistentVolume) error {
	before := claim.Status
	unused, err := r.setUnused(ctx, claim)
	if err != nil {
		return err
	}
	if bound := setBound(claim, pv); !bound && !unused {
		return nil
	}
	if err := r.client.Status().Patch(ctx, claim, boundStatusPatch(before, claim)); err != nil {
		return fmt.Errorf("setting claim %s/%s to Bound: %w", claim.Namespace, claim.Name, err)
	}
	if before.Phase != corev1.ClaimBound && provisionedHere(pv) {
		r.tellProvisioned(claim, pv)
	}
	return nil
}

// setBound sets a claim's status in memory and tells whether it changed. A bound
// claim's capacity is not touched: while a file system grows it is the node's to
// write.
func setBound(claim *corev1.PersistentVolumeClaim, pv *corev1.PersistentVolume) bool {
	status, class := &claim.Status, pv.Spec.VolumeAttributesClassName
	changed := setBindable(claim, boundCondition(pv))
	if status.Phase != corev1.ClaimBound || status.Capacity == nil {
		status.Capacity = usableCapacity(pv)
		changed = true
	}
	if !slices.Equal(status.AccessModes, pv.Spec.AccessModes) || !ptr.Equal(status.CurrentVolumeAttributesClassName, class) {
		// Copies: what the API server answers is decoded into them.
		status.AccessModes, status.CurrentVolumeAttributesClassName = slices.Clone(pv.Spec.AccessModes), nil
		if class != nil {
			status.CurrentVolumeAttributesClassName = ptr.To(*class)
		}
		changed = true
	}
	status.Phase = corev1.ClaimBound
	return changed
}

// usableCapacity is what a claim that is bound to a volume has: of one that grew, and
// whose file system no node has grown since, no more than before.
func usableCapacity(pv *corev1.PersistentVolume) corev1.ResourceList {
	capacity := maps.Clone(pv.Spec.Capacity)
	if had, err := resource.ParseQuantity(pv.Annotations[annPreResizeCapacity]); err == nil {
		capacity[corev1.ResourceStorage] = had
	}
	return capacity
}
