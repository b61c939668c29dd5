package datasource

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/controllers/persistentvolumeclaim/step"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/bindable"
	"github.com/stowage-dev/stowage/internal/provisioned"
	"github.com/stowage-dev/stowage/internal/wrap"
)

// EnsureRecorded records the snapshot or the volume that a request copies, before the first call that has
// it, and keeps the claim of a volume. A repeat with another source would not find what the first call made.
func (f *Finder) EnsureRecorded(ctx context.Context, claim *corev1.PersistentVolumeClaim, request backend.Request) error {
	if request.Source == nil || request.Source.IsUnknown() || *request.Source == *provisioned.SourceOf(claim) {
		return nil
	}
	if request.Source.ID != "" {
		if err := f.ensureProtected(ctx, claim, *request.Source); err != nil {
			return err
		}
	}
	text, _, err := recordOf(claim, *request.Source).Text()
	if err != nil {
		return err
	}
	_, err = step.WriteStatus(ctx, f.client, claim, func() {
		bindable.SetCondition(claim, corev1.PersistentVolumeClaimCondition{
			Type: stowagev1alpha1.RestoreCondition, Status: corev1.ConditionTrue, Reason: bindable.ReasonRestoring, Message: text,
		})
	})
	return wrap.Error(err, "recording what claim %s/%s is a copy of", claim.Namespace, claim.Name)
}
