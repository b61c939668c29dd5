package persistentvolume

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/internal/binder"
	"github.com/stowage-dev/stowage/internal/wrap"
)

// claimed tells, from live reads, whether the volume is still a claim's: bound to
// it, or about to be.
func claimed(ctx context.Context, live client.Reader, pv *corev1.PersistentVolume) (bool, error) {
	if !wasClaimed(pv) {
		return usedByClaim(ctx, live, pv)
	}
	ref := pv.Spec.ClaimRef
	claim := &corev1.PersistentVolumeClaim{}
	err := live.Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, claim)
	if err != nil {
		return false, wrap.Error(client.IgnoreNotFound(err), "reading claim %s/%s", ref.Namespace, ref.Name)
	}
	return holds(claim, pv), nil
}

// wasClaimed tells whether a volume is tied to one certain claim, living or gone.
func wasClaimed(pv *corev1.PersistentVolume) bool {
	return pv.Spec.ClaimRef != nil && pv.Spec.ClaimRef.UID != ""
}

// holds tells whether the claim that a volume is tied to is bound to it, or may yet
// be: nothing binds a volume that is being deleted.
func holds(claim *corev1.PersistentVolumeClaim, pv *corev1.PersistentVolume) bool {
	switch {
	case claim.UID != pv.Spec.ClaimRef.UID:
		return false
	case claim.Spec.VolumeName == "":
		return pv.DeletionTimestamp.IsZero()
	default:
		return claim.Spec.VolumeName == pv.Name
	}
}

// usedByClaim tells whether a claim is bound to a volume that lost its side of the
// binding. One that only asks for the volume doesn't hold it.
func usedByClaim(ctx context.Context, reader client.Reader, pv *corev1.PersistentVolume, options ...client.ListOption) (bool, error) {
	claims := &corev1.PersistentVolumeClaimList{}
	if err := reader.List(ctx, claims, options...); err != nil {
		return false, fmt.Errorf("listing the claims of volume %s: %w", pv.Name, err)
	}
	return slices.ContainsFunc(claims.Items, func(claim corev1.PersistentVolumeClaim) bool {
		return claim.Spec.VolumeName == pv.Name && binder.Completed(&claim)
	}), nil
}
