package datasource

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/controllers/persistentvolumeclaim/step"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/bindable"
	"github.com/stowage-dev/stowage/internal/provisioned"
	"github.com/stowage-dev/stowage/internal/wrap"
)

// EnsureRecorded records the snapshot that a request restores, before the first call that has it. A repeat
// with another snapshot would not find what the first call made.
func EnsureRecorded(ctx context.Context, writer client.StatusClient, claim *corev1.PersistentVolumeClaim, request backend.Request) error {
	if request.Source == nil || request.Source.Snapshot == "" {
		return nil
	}
	text, _, err := recordOf(claim, request.Source.Snapshot).Text()
	if err != nil {
		return err
	}
	_, err = step.WriteStatus(ctx, writer, claim, func() {
		bindable.SetCondition(claim, corev1.PersistentVolumeClaimCondition{
			Type: stowagev1alpha1.RestoreCondition, Status: corev1.ConditionTrue, Reason: bindable.ReasonRestoring, Message: text,
		})
	})
	return wrap.Error(err, "recording the snapshot that claim %s/%s is restored from", claim.Namespace, claim.Name)
}

func recordOf(claim *corev1.PersistentVolumeClaim, handle string) provisioned.Restore {
	return provisioned.Restore{Attempt: provisioned.AttemptOf(claim), Snapshot: handle}
}
