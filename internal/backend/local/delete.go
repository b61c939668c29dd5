package local

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
)

// Delete removes the LocalVolume; the agent removes the data before the object
// goes, and not while the volume is mounted.
func (b *localBackend) Delete(ctx context.Context, id string) error {
	volume := &stowagev1alpha1.LocalVolume{}
	if err := b.Live.Get(ctx, client.ObjectKey{Name: id}, volume); err != nil {
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("reading LocalVolume %s: %w", id, err)
	}
	if !strings.HasPrefix(id, backend.VolumeID(volume.Spec.ClaimRef.UID, 1)) || volume.Spec.Backend != b.name {
		return backend.Conflict.Errorf("LocalVolume %s belongs to backend %s and the claim with uid %s: it is not removed",
			id, volume.Spec.Backend, volume.Spec.ClaimRef.UID)
	}
	if err := b.markForDeletion(ctx, volume); err != nil {
		return err
	}
	return backend.InProgress.Errorf("waiting for the agent of node %s to remove volume %s%s", volume.Spec.NodeName, id, lastMessage(volume))
}

// condemn marks a volume's data for removal, then deletes the object. Agents
// remove no data without the mark, so that whoever deletes objects by hand, or
// the whole CRD, loses nothing. The version keeps a leader that is late from marking
// what was retained since it read.
func (b *localBackend) markForDeletion(ctx context.Context, volume *stowagev1alpha1.LocalVolume) error {
	if !volume.Spec.RemoveData {
		before := volume.DeepCopy()
		volume.Spec.RemoveData = true
		err := b.Client.Patch(ctx, volume, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
		if apierrors.IsConflict(err) {
			return changedMeanwhile(volume.Name)
		}
		if err != nil {
			return fmt.Errorf("marking the data of LocalVolume %s for removal: %w", volume.Name, err)
		}
	}
	if !volume.DeletionTimestamp.IsZero() {
		return nil
	}
	// What decided, the owner, can't change: the uid is fence enough.
	if err := b.Client.Delete(ctx, volume, client.Preconditions{UID: &volume.UID}); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting LocalVolume %s: %w", volume.Name, err)
	}
	return nil
}

// lastWord is what was last said of a volume that is to go: that its node is gone, or
// what the agent said, if it said anything.
func lastMessage(volume *stowagev1alpha1.LocalVolume) string {
	if gone := meta.FindStatusCondition(volume.Status.Conditions, stowagev1alpha1.NodeGoneCondition); gone != nil {
		return ": " + gone.Message
	}
	ready := meta.FindStatusCondition(volume.Status.Conditions, stowagev1alpha1.ReadyCondition)
	if ready == nil || ready.Status == metav1.ConditionTrue || ready.Message == "" {
		return ""
	}
	return ": " + ready.Message
}
