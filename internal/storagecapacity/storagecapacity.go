// Package storagecapacity writes CSIStorageCapacities, by which the scheduler knows how much room there is
// for volumes of a class. The reconcilers of NodeDisks and of CSI drivers use it. It decides nothing
// and reads nothing.
package storagecapacity

import (
	"context"
	"fmt"

	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/internal/wrap"
)

// Publish makes the published objects the desired ones, which are by their names. Of one that is there, it
// writes the desired capacity, if there is one. It deletes those that are not needed any more.
func Publish(
	ctx context.Context, writer client.Writer, published []storagev1.CSIStorageCapacity, desired map[string]*storagev1.CSIStorageCapacity,
) error {
	there := map[string]bool{}
	for i := range published {
		had := &published[i]
		there[had.Name] = true
		if want := desired[had.Name]; want != nil && sameTarget(had, want) {
			if err := Update(ctx, writer, had, want); err != nil {
				return err
			}
			continue
		}
		// The class, or a label of the node, was changed: the next pass creates it again.
		if err := writer.Delete(ctx, had, client.Preconditions{UID: &had.UID}); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting CSIStorageCapacity %s: %w", had.Name, err)
		}
	}
	for name, want := range desired {
		if there[name] {
			continue
		}
		if err := writer.Create(ctx, want); client.IgnoreAlreadyExists(err) != nil {
			return fmt.Errorf("creating CSIStorageCapacity %s: %w", name, err)
		}
	}
	return nil
}

// sameTarget compares the immutable fields of a capacity, and the owner: a recreated one is another.
func sameTarget(had, want *storagev1.CSIStorageCapacity) bool {
	return had.StorageClassName == want.StorageClassName && equality.Semantic.DeepEqual(had.NodeTopology, want.NodeTopology) &&
		equality.Semantic.DeepEqual(had.OwnerReferences, want.OwnerReferences)
}

// Update writes the desired capacity, if there is one and it differs.
func Update(ctx context.Context, writer client.Writer, had, want *storagev1.CSIStorageCapacity) error {
	if want.Capacity == nil || equality.Semantic.DeepEqual(had.Capacity, want.Capacity) && equality.Semantic.DeepEqual(had.MaximumVolumeSize, want.MaximumVolumeSize) {
		return nil
	}
	changed := had.DeepCopy()
	changed.Capacity, changed.MaximumVolumeSize = want.Capacity, want.MaximumVolumeSize
	err := writer.Patch(ctx, changed, client.MergeFrom(had))
	return wrap.Error(client.IgnoreNotFound(err), "updating CSIStorageCapacity %s", had.Name)
}
