package controllers

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
)

const mebi = 1 << 20

// reportCapacity tells how much the backend can hold, where it can say. While the
// storage doesn't answer, what it said last stays.
func (r *StorageBackendReconciler) reportCapacity(ctx context.Context, object *stowagev1alpha1.StorageBackend, opened backend.Backend) {
	reporter, can := backend.As[backend.CapacityReporter](opened)
	if !can {
		object.Status.Capacity = nil
		return
	}
	if !meta.IsStatusConditionTrue(object.Status.Conditions, stowagev1alpha1.ReachableCondition) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	space, err := reporter.Space(ctx)
	if err != nil {
		return
	}
	object.Status.Capacity = &stowagev1alpha1.BackendCapacity{Total: rounded(space.Total), Used: rounded(space.Used)}
}

// rounded is a quantity in whole MiB: people read it, and a few bytes more are no
// reason to write. Used rounded up, total would be more than there is.
func rounded(quantity resource.Quantity) *resource.Quantity {
	return resource.NewQuantity(quantity.Value()/mebi*mebi, resource.BinarySI)
}
