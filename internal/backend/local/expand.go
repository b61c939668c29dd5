package local

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
)

var _ backend.Expander = (*localBackend)(nil)

// Expand asks the node's agent for more room, then waits for its answer. What has
// no room stays asked for, until less is. It reads live: that a volume isn't there
// ends all trying.
func (b *localBackend) Expand(ctx context.Context, id string, capacity resource.Quantity) (backend.Expansion, error) {
	volume := &stowagev1alpha1.NodeVolume{}
	err := b.Live.Get(ctx, client.ObjectKey{Name: id}, volume)
	switch {
	case apierrors.IsNotFound(err):
		return backend.Expansion{}, backend.NotFound.Errorf("there is no NodeVolume %s: its data is gone, or was never made", id)
	case err != nil:
		return backend.Expansion{}, fmt.Errorf("reading NodeVolume %s: %w", id, err)
	case !strings.HasPrefix(id, backend.VolumeID(volume.Spec.ClaimRef.UID, 1)) || volume.Spec.Backend != b.name:
		return backend.Expansion{}, backend.Conflict.Errorf("NodeVolume %s belongs to backend %s and the claim with uid %s: it is left as it is",
			id, volume.Spec.Backend, volume.Spec.ClaimRef.UID)
	case !volume.DeletionTimestamp.IsZero():
		return backend.Expansion{}, backend.Conflict.Errorf("NodeVolume %s is being deleted: it doesn't grow", id)
	}
	if err := checkSize(capacity); err != nil {
		return backend.Expansion{}, err
	}
	has, capacity := ptr.Deref(volume.Status.Capacity, resource.Quantity{}), possible(volume, capacity)
	if err := b.ask(ctx, volume, larger(capacity, has)); err != nil {
		return backend.Expansion{}, err
	}
	if has.Cmp(capacity) >= 0 {
		return backend.Expansion{
			Capacity: has,
			OnNode:   growsOnNode(volume),
			Advisory: volume.Spec.Layout != stowagev1alpha1.LayoutImage && !volume.Status.Enforced,
		}, nil
	}
	return backend.Expansion{}, whyNotGrown(volume)
}

// ask has the NodeVolume ask for a capacity, be it more or less than before. The
// resourceVersion keeps what the agent gives meanwhile, and two who ask, apart.
func (b *localBackend) ask(ctx context.Context, volume *stowagev1alpha1.NodeVolume, capacity resource.Quantity) error {
	if volume.Spec.Capacity.Cmp(capacity) == 0 {
		return nil
	}
	before := volume.DeepCopy()
	volume.Spec.Capacity = capacity
	err := b.Client.Patch(ctx, volume, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	switch {
	case err == nil:
		return nil
	case apierrors.IsConflict(err):
		return backend.InProgress.Errorf("NodeVolume %s was changed meanwhile: it is asked again", volume.Name)
	case apierrors.IsInvalid(err):
		return backend.Invalid.Errorf("asking for %s for NodeVolume %s: %w", capacity.String(), volume.Name, err)
	default:
		return fmt.Errorf("asking for %s for NodeVolume %s: %w", capacity.String(), volume.Name, err)
	}
}

// whyNotGrown tells what the agent said of the capacity that is asked for now.
func whyNotGrown(volume *stowagev1alpha1.NodeVolume) error {
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
