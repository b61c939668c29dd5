package binding

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/controllers/persistentvolumeclaim/step"
	"github.com/stowage-dev/stowage/internal/binder"
	"github.com/stowage-dev/stowage/internal/provisioned"
)

// FindVolume reserves the volume that the claim names, or the best that fits.
func (r *Binder) FindVolume(_ context.Context, scope *step.Scope) (*step.Wait, error) {
	claim := scope.Claim
	scope.Searched = true
	if claim.Spec.VolumeName == "" {
		if reserved := r.index.Reserve(scope.Request); reserved != nil && !provisioned.IsUndone(reserved, claim) {
			scope.Volume = reserved
		}
		return nil, nil
	}
	found, cause := r.index.ReserveNamed(scope.Request)
	switch {
	case cause != binder.Fits:
		return waitForNamedVolume(claim, cause), nil
	case found == nil:
		return waitForMissingVolume(claim), nil
	}
	scope.Volume = found
	return nil, nil
}

// FindBoundVolume finds the volume of a claim that was bound before. The claim is Lost if the
// volume is gone or tied to another claim. The cache may not show the binding yet, so a live
// read comes before Lost. The volume may share memory with the cache: it must not be changed.
func (r *Binder) FindBoundVolume(ctx context.Context, scope *step.Scope) (*step.Wait, error) {
	claim := scope.Claim
	key := client.ObjectKey{Name: claim.Spec.VolumeName}
	for _, reader := range []client.Reader{r.client, r.live} {
		pv := &corev1.PersistentVolume{}
		err := reader.Get(ctx, key, pv, client.UnsafeDisableDeepCopy)
		switch {
		case apierrors.IsNotFound(err):
			scope.Volume = nil
		case err != nil:
			return nil, fmt.Errorf("reading volume %s: %w", key.Name, err)
		default:
			scope.Volume = pv
		}
		if scope.Volume != nil && binder.TiedTo(scope.Volume, claim) {
			return nil, nil
		}
	}
	switch {
	case scope.Volume == nil:
		return waitForLostVolume(claim), nil
	case scope.Volume.Spec.ClaimRef == nil || binder.ReservedFor(scope.Volume, claim):
		return nil, nil
	default:
		return waitForMisboundVolume(claim, scope.Volume), nil
	}
}

// HoldVolume ties a deleted claim's volume to it again if a person removed the claimRef. The
// data belongs to the claim until the claim is gone. Then the volume must be Released, not
// available to others.
func (r *Binder) HoldVolume(ctx context.Context, scope *step.Scope) (*step.Wait, error) {
	if !binder.Completed(scope.Claim) {
		return nil, nil
	}
	waiting, err := r.FindBoundVolume(ctx, scope)
	if waiting != nil || err != nil {
		// A lost volume must not block the deletion of its claim.
		return nil, err
	}
	_, err = r.bindVolume(ctx, scope.Volume, scope.Claim)
	return nil, err
}
