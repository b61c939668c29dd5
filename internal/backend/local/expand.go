package local

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
)

var _ backend.Expander = (*localBackend)(nil)

// Expand requests more room from the node's agent, then waits for its answer. A request without
// room stands until a smaller one replaces it. It reads live: NotFound ends all repeats.
func (b *localBackend) Expand(ctx context.Context, request backend.ExpandRequest) (backend.Expansion, error) {
	volume, err := b.ownVolume(ctx, request.ID)
	switch {
	case err != nil:
		return backend.Expansion{}, err
	case volume == nil:
		return backend.Expansion{}, backend.NotFound.Errorf("there is no NodeVolume %s: its data is gone, or was never made", request.ID)
	case !volume.DeletionTimestamp.IsZero():
		return backend.Expansion{}, backend.Conflict.Errorf("NodeVolume %s is being deleted: it doesn't grow", request.ID)
	}
	if err := checkSize(request.Capacity); err != nil {
		return backend.Expansion{}, err
	}
	has, capacity := ptr.Deref(volume.Status.Capacity, resource.Quantity{}), roundUp(volume, request.Capacity)
	if err := b.requestCapacity(ctx, volume, larger(capacity, has)); err != nil {
		return backend.Expansion{}, err
	}
	if has.Cmp(capacity) >= 0 {
		return backend.Expansion{
			Capacity: has,
			OnNode:   growsOnNode(volume),
			Advisory: volume.Spec.Layout != stowagev1alpha1.LayoutImage && !volume.Status.Enforced,
		}, nil
	}
	return backend.Expansion{}, explainPending(volume)
}

// requestCapacity sets the capacity that the NodeVolume requests, more or less than before.
func (b *localBackend) requestCapacity(ctx context.Context, volume *stowagev1alpha1.NodeVolume, capacity resource.Quantity) error {
	if volume.Spec.Capacity.Cmp(capacity) == 0 {
		return nil
	}
	before := volume.DeepCopy()
	volume.Spec.Capacity = capacity
	err := b.patch(ctx, before, volume, "requesting capacity "+capacity.String())
	if apierrors.IsInvalid(err) {
		return backend.Invalid.Errorf("%w", err)
	}
	return err
}

// explainPending is what the agent reported about the capacity that is requested now.
func explainPending(volume *stowagev1alpha1.NodeVolume) error {
	granted := meta.FindStatusCondition(volume.Status.Conditions, stowagev1alpha1.GrantedCondition)
	ready := meta.FindStatusCondition(volume.Status.Conditions, stowagev1alpha1.ReadyCondition)
	switch {
	case ready != nil && ready.Reason == stowagev1alpha1.ReasonLost:
		return backend.Unavailable.Errorf("node %s: %s", volume.Spec.NodeName, ready.Message)
	case granted == nil || granted.ObservedGeneration != volume.Generation || granted.Status == metav1.ConditionTrue:
		return backend.InProgress.Errorf("waiting for the agent of node %s to grow volume %s", volume.Spec.NodeName, volume.Name)
	default:
		return kindOf(granted.Reason).Errorf("node %s: %s", volume.Spec.NodeName, granted.Message)
	}
}

func larger(a, b resource.Quantity) resource.Quantity {
	if a.Cmp(b) < 0 {
		return b
	}
	return a
}
