package step

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/bindable"
	"github.com/stowage-dev/stowage/internal/provisioned"
	"github.com/stowage-dev/stowage/internal/wrap"
)

// FillPlacement adds the recorded places of a claim's current attempt to a request, if there are any.
func FillPlacement(request *backend.Request, claim *corev1.PersistentVolumeClaim) bool {
	recorded := provisioned.PlacementOf(claim)
	if recorded != nil {
		request.Placement = &recorded.Placement
	}
	return recorded != nil
}

// EnsurePlacement records where a backend may make the volume, and adds it to the request. A repeat of the
// call has the same places, though nodes and zones may be gone by then.
func EnsurePlacement(ctx context.Context, writer client.StatusClient, claim *corev1.PersistentVolumeClaim, opened backend.Backend, request *backend.Request) error {
	placed, err := backend.Place(ctx, opened, *request)
	switch {
	case backend.KindOf(err) != "":
		return nil //nolint:nilerr // Provision fails with the same error, before it calls the storage
	case placed == nil || err != nil:
		return err
	}
	request.Placement = placed
	text, fits, err := provisioned.Placement{Attempt: provisioned.AttemptOf(claim), Node: nameOf(request.Node), Placement: *placed}.Text()
	if !fits || err != nil {
		return err
	}
	_, err = WriteStatus(ctx, writer, claim, func() {
		bindable.SetCondition(claim, corev1.PersistentVolumeClaimCondition{
			Type: stowagev1alpha1.PlacementCondition, Status: corev1.ConditionTrue, Reason: bindable.ReasonPlaced, Message: text,
		})
	})
	return wrap.Error(err, "recording the places of claim %s/%s", claim.Namespace, claim.Name)
}

// IsPlacedElsewhere reports whether the record is for another node than the claim's pod has now.
func IsPlacedElsewhere(claim *corev1.PersistentVolumeClaim, node *corev1.Node) bool {
	recorded := provisioned.PlacementOf(claim)
	return recorded != nil && recorded.Node != nameOf(node)
}

// ForgetRecords removes the records of a call once a volume object has the answer. Those of a claim that is
// being deleted go with the claim.
func ForgetRecords(ctx context.Context, writer client.StatusClient, claim *corev1.PersistentVolumeClaim) error {
	if !claim.DeletionTimestamp.IsZero() {
		return nil
	}
	_, err := WriteStatus(ctx, writer, claim, func() { provisioned.ClearRecords(claim) })
	return wrap.Error(err, "removing the records of the call for claim %s/%s", claim.Namespace, claim.Name)
}

func nameOf(node *corev1.Node) string {
	if node == nil {
		return ""
	}
	return node.Name
}
