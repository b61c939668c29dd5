package uses

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/internal/binder"
	"github.com/stowage-dev/stowage/internal/index"
)

// Claims returns the claim of a reference with a UID, from a live read, or nil if it is known to be gone.
type Claims interface {
	Of(ctx context.Context, ref *corev1.ObjectReference) (*corev1.PersistentVolumeClaim, error)
}

// Claimed reports, as of now, whether a claim is bound to the volume or is about to be.
func Claimed(ctx context.Context, live client.Reader, claims Claims, pv *corev1.PersistentVolume) (bool, error) {
	if !WasClaimed(pv) {
		return UsedByClaim(ctx, live, pv)
	}
	claim, err := claims.Of(ctx, pv.Spec.ClaimRef)
	return claim != nil && MayBeBound(claim, pv), err
}

// WasClaimed reports whether a volume is tied to a certain claim, live or deleted.
func WasClaimed(pv *corev1.PersistentVolume) bool {
	return pv.Spec.ClaimRef != nil && pv.Spec.ClaimRef.UID != ""
}

// MayBeBound reports whether the claim that a volume is tied to is bound to it, or may yet be.
// Nothing binds a volume that is being deleted.
func MayBeBound(claim *corev1.PersistentVolumeClaim, pv *corev1.PersistentVolume) bool {
	switch {
	case claim.UID != pv.Spec.ClaimRef.UID:
		return false
	case claim.Spec.VolumeName == "":
		return pv.DeletionTimestamp.IsZero()
	default:
		return claim.Spec.VolumeName == pv.Name
	}
}

// UsedByClaim reports whether a claim is bound to a volume that lost its claimRef. A claim
// that only requests the volume does not count.
func UsedByClaim(ctx context.Context, live client.Reader, pv *corev1.PersistentVolume) (bool, error) {
	claims := &corev1.PersistentVolumeClaimList{}
	if err := live.List(ctx, claims); err != nil {
		return false, fmt.Errorf("listing the claims of volume %s: %w", pv.Name, err)
	}
	return areBoundTo(claims.Items, pv), nil
}

// UsedByCachedClaim does the same from the cache.
func UsedByCachedClaim(ctx context.Context, cache client.Reader, pv *corev1.PersistentVolume) (bool, error) {
	claims, err := index.ClaimsNaming(ctx, cache, pv.Name)
	return areBoundTo(claims, pv), err
}

func areBoundTo(claims []corev1.PersistentVolumeClaim, pv *corev1.PersistentVolume) bool {
	return slices.ContainsFunc(claims, func(claim corev1.PersistentVolumeClaim) bool {
		return claim.Spec.VolumeName == pv.Name && binder.Completed(&claim)
	})
}
