package local

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
)

// Delete removes the NodeVolume. The agent removes the data before the object goes, and not
// while the volume is mounted.
func (b *localBackend) Delete(ctx context.Context, id string) error {
	volume, err := b.ownVolume(ctx, id)
	if volume == nil || err != nil {
		return err
	}
	if err := b.markForDeletion(ctx, volume); err != nil {
		return err
	}
	return backend.InProgress.Errorf("waiting for the agent of node %s to remove volume %s%s", volume.Spec.NodeName, id, lastMessage(volume))
}

// markForDeletion marks a volume's data for removal, then deletes the object. Agents remove no
// data without the mark, so deleting objects by hand, or the whole CRD, loses nothing.
func (b *localBackend) markForDeletion(ctx context.Context, volume *stowagev1alpha1.NodeVolume) error {
	if !volume.Spec.RemoveData {
		before := volume.DeepCopy()
		volume.Spec.RemoveData = true
		if err := b.patch(ctx, before, volume, "marking the data for removal"); err != nil {
			return err
		}
	}
	if !volume.DeletionTimestamp.IsZero() {
		return nil
	}
	// The owner, on which this was decided, can't change: the uid is precondition enough.
	if err := b.Client.Delete(ctx, volume, client.Preconditions{UID: &volume.UID}); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting NodeVolume %s: %w", volume.Name, err)
	}
	return nil
}
