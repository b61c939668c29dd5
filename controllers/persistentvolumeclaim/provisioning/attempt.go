package provisioning

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/bindable"
	"github.com/stowage-dev/stowage/internal/patch"
	"github.com/stowage-dev/stowage/internal/provisioned"
	"github.com/stowage-dev/stowage/internal/wrap"
)

// countAttempt gives the next volume of a claim a new id, after an earlier one was undone or
// belongs to another PersistentVolume. A pending operation that remains after a crash is
// undone under the new id, where there is nothing, and counted again.
func (r *Provisioner) countAttempt(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	before := claim.DeepCopy()
	bindable.SetCondition(claim, corev1.PersistentVolumeClaimCondition{
		Type: stowagev1alpha1.AttemptCondition, Status: corev1.ConditionTrue, Reason: bindable.ReasonUndone,
		Message: fmt.Sprintf(provisioned.AttemptFormat, provisioned.AttemptOf(claim)+1),
	})
	err := r.client.Status().Patch(ctx, claim, patch.ClaimStatus(before, client.MergeFromWithOptimisticLock{}))
	return wrap.Error(err, "counting the attempts of claim %s/%s", claim.Namespace, claim.Name)
}

// beginAnew counts the attempt of a claim after its volume was undone, or turned out to be
// another PersistentVolume's. It then clears the pending operation.
func (r *Provisioner) beginAnew(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	if err := r.countAttempt(ctx, claim); err != nil {
		return err
	}
	before := claim.DeepCopy()
	provisioned.ClearIntent(claim)
	err := r.client.Patch(ctx, claim, patch.Fenced(before))
	return wrap.Error(err, "beginning again for claim %s/%s", claim.Namespace, claim.Name)
}
