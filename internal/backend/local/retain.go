package local

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
)

var (
	_ backend.Retainer         = (*localBackend)(nil)
	_ backend.SnapshotRetainer = (*localBackend)(nil)
)

// Retain labels the NodeVolume. The same write takes the mark for removal back, unless the agent
// has reported that it begins. Agent and manager write with the version that they read, so one of
// the two writes fails.
func (b *localBackend) Retain(ctx context.Context, id string) (string, error) {
	volume, err := b.ownVolume(ctx, id)
	switch {
	case err != nil:
		return "", err
	case volume == nil:
		return b.retainUnrecorded(ctx, id)
	}
	return b.retain(ctx, volume)
}

// RetainSnapshot does the same for a snapshot.
func (b *localBackend) RetainSnapshot(ctx context.Context, handle string) error {
	snapshot, err := b.ownSnapshot(ctx, handle)
	switch {
	case err != nil:
		return err
	case snapshot == nil:
		return backend.NotFound.Errorf("there is no snapshot %s", handle)
	}
	_, err = b.retain(ctx, snapshot)
	return err
}

func (b *localBackend) retain(ctx context.Context, volume *stowagev1alpha1.NodeVolume) (place string, err error) {
	if volume.Spec.RemoveData && volume.Status.Removing {
		return "", backend.NotFound.Errorf("it is too late to keep volume %s: the agent of node %s has begun to remove it", volume.Name, volume.Spec.NodeName)
	}
	place = fmt.Sprintf("%s on node %s (NodeVolume %s)", volume.Status.Path, volume.Spec.NodeName, volume.Name)
	if volume.Labels[stowagev1alpha1.RetainedLabel] != "" && !volume.Spec.RemoveData {
		return place, nil
	}
	if volume.Spec.RemoveData && !volume.DeletionTimestamp.IsZero() {
		reports, err := b.agentReportsRemoval(ctx, volume.Spec.NodeName)
		if err != nil {
			return "", err
		}
		if !reports {
			place += fmt.Sprintf(", as far as the node's agent, which is of an older version, hasn't removed it since %s", volume.DeletionTimestamp)
		}
	}
	return place, b.label(ctx, volume)
}

// label writes that a volume is retained.
func (b *localBackend) label(ctx context.Context, volume *stowagev1alpha1.NodeVolume) error {
	before := volume.DeepCopy()
	if volume.Labels == nil {
		volume.Labels = map[string]string{}
	}
	volume.Labels[stowagev1alpha1.RetainedLabel] = "true"
	volume.Spec.RemoveData = false
	return b.patch(ctx, before, volume, "retaining the data")
}

// agentReportsRemoval reports whether a node's agent has a version that writes status.removing
// before it touches data. Such a version also reports unrecorded volumes.
func (b *localBackend) agentReportsRemoval(ctx context.Context, node string) (bool, error) {
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
