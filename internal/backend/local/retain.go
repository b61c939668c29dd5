package local

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
)

var _ backend.Retainer = (*localBackend)(nil)

// Retain labels the NodeVolume. An order to remove its data is taken back in the same
// write, unless the agent said before that it begins: agent and manager write with the
// version that they read, so one of the two is refused.
func (b *localBackend) Retain(ctx context.Context, id string) (string, error) {
	volume := &stowagev1alpha1.NodeVolume{}
	err := b.Live.Get(ctx, client.ObjectKey{Name: id}, volume)
	switch {
	case apierrors.IsNotFound(err):
		return b.retainUnrecorded(ctx, id)
	case err != nil:
		return "", fmt.Errorf("reading NodeVolume %s: %w", id, err)
	case !strings.HasPrefix(id, backend.VolumeID(volume.Spec.ClaimRef.UID, 1)) || volume.Spec.Backend != b.name:
		return "", backend.Conflict.Errorf("NodeVolume %s belongs to backend %s and the claim with uid %s: it is left as it is",
			id, volume.Spec.Backend, volume.Spec.ClaimRef.UID)
	case volume.Spec.RemoveData && volume.Status.Removing:
		return "", backend.NotFound.Errorf("it is too late to keep volume %s: the agent of node %s has begun to remove it", id, volume.Spec.NodeName)
	}
	place := fmt.Sprintf("%s on node %s (NodeVolume %s)", volume.Status.Path, volume.Spec.NodeName, volume.Name)
	if volume.Labels[stowagev1alpha1.RetainedLabel] != "" && !volume.Spec.RemoveData {
		return place, nil
	}
	if volume.Spec.RemoveData && !volume.DeletionTimestamp.IsZero() {
		tells, err := b.agentTells(ctx, volume.Spec.NodeName)
		if err != nil {
			return "", err
		}
		if !tells {
			place += fmt.Sprintf(", as far as the node's agent, which is of an older version, hasn't removed it since %s", volume.DeletionTimestamp)
		}
	}
	return place, b.label(ctx, volume)
}

// label writes that a volume is kept.
func (b *localBackend) label(ctx context.Context, volume *stowagev1alpha1.NodeVolume) error {
	before := volume.DeepCopy()
	if volume.Labels == nil {
		volume.Labels = map[string]string{}
	}
	volume.Labels[stowagev1alpha1.RetainedLabel] = "true"
	volume.Spec.RemoveData = false
	err := b.Client.Patch(ctx, volume, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	switch {
	case apierrors.IsConflict(err):
		return changedMeanwhile(volume.Name)
	case err != nil:
		return fmt.Errorf("keeping the data of NodeVolume %s: %w", volume.Name, err)
	}
	return nil
}

func changedMeanwhile(id string) error {
	return backend.InProgress.Errorf("NodeVolume %s was changed meanwhile: it is looked at again", id)
}

// agentTells reports whether the agent of a node is of a version that writes
// status.removing before it touches data. Such a version also reports what is unrecorded.
func (b *localBackend) agentTells(ctx context.Context, node string) (bool, error) {
	disks := &stowagev1alpha1.NodeDiskList{}
	if err := b.Live.List(ctx, disks, client.MatchingLabels{stowagev1alpha1.BackendLabel: b.name}); err != nil {
		return false, fmt.Errorf("listing the disks of backend %s: %w", b.name, err)
	}
	for i := range disks.Items {
		if disks.Items[i].Spec.NodeName == node {
			return disks.Items[i].Status.Unrecorded != nil, nil
		}
	}
	return false, nil
}
