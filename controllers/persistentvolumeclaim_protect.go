package controllers

import (
	"context"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// ensureProtected adds the finalizer to a claim that was created while the
// admission plug-in was off.
func (r *PersistentVolumeClaimReconciler) ensureProtected(ctx context.Context, scope *claimScope) (*wait, error) {
	if controllerutil.ContainsFinalizer(scope.claim, pvcProtectionFinalizer) {
		return nil, nil
	}
	before := scope.claim.DeepCopy()
	controllerutil.AddFinalizer(scope.claim, pvcProtectionFinalizer)
	err := r.client.Patch(ctx, scope.claim, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if apierrors.IsNotFound(err) {
		// The cache still shows a claim that is gone: there is nothing to bring further.
		return &wait{}, nil
	}
	return nil, wrap(err, "protecting claim %s/%s", scope.claim.Namespace, scope.claim.Name)
}

// awaitUnused keeps a deleted claim while a pod uses it. The cache only saves the
// question: that no pod uses the claim is believed when read live.
func (r *PersistentVolumeClaimReconciler) awaitUnused(ctx context.Context, scope *claimScope) (*wait, error) {
	claim := scope.claim
	cached, err := r.cachedPods(ctx, claim)
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(cached, uses(claim)) {
		return &wait{}, nil
	}
	if !controllerutil.ContainsFinalizer(claim, pvcProtectionFinalizer) {
		return nil, nil
	}
	pods, err := r.shared.pods.Get(ctx, claim.Namespace)
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(pods, uses(claim)) {
		return &wait{}, nil
	}
	return nil, nil
}
