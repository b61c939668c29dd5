package controllers

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/internal/binder"
)

// tellMismatches says, when a claim takes a volume, which others a person reserved
// for it that don't fit: nothing else would tell why it got none of those. While
// the claim waits its condition does.
func (r *PersistentVolumeClaimReconciler) tellMismatches(ctx context.Context, scope *claimScope) (*wait, error) {
	if scope.volume == nil || binder.TiedTo(scope.volume, scope.claim) {
		return nil, nil
	}
	return nil, r.tellUnfit(ctx, scope)
}

func (r *PersistentVolumeClaimReconciler) tellUnfit(ctx context.Context, scope *claimScope) error {
	claim, reserved := scope.claim, &corev1.PersistentVolumeList{}
	key := client.ObjectKeyFromObject(claim).String()
	if err := r.client.List(ctx, reserved, client.MatchingFields{volumesByClaim: key}, unhurried, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing the volumes that are reserved for claim %s: %w", key, err)
	}
	for i := range reserved.Items {
		pv := &reserved.Items[i]
		cause := binder.Fit(pv, scope.wish)
		if cause == binder.Fits || !binder.ReservedFor(pv, claim) {
			continue
		}
		r.events.Eventf(claim, pv, corev1.EventTypeWarning, "VolumeMismatch", "Bind", "volume %s is reserved for this claim, and does not fit: %s", pv.Name, cause)
		r.events.Eventf(pv, claim, corev1.EventTypeWarning, "VolumeMismatch", "Bind", "claim %s, for which the volume is reserved, can't have it: %s", key, cause)
	}
	return nil
}
