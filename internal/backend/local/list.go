package local

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
)

var _ backend.Lister = (*localBackend)(nil)

// List returns the volumes and snapshots of this backend's NodeVolumes, and those without a NodeVolume
// that agents found on their disks. It reads live: a volume that a cache has not seen yet would
// count as lost. It reads disks first: a NodeVolume may have been created since the agent's report.
func (b *localBackend) List(ctx context.Context) ([]backend.Held, error) {
	found, err := b.found.Get(ctx, b.name)
	if err != nil {
		return nil, err
	}
	volumes := &stowagev1alpha1.NodeVolumeList{}
	if err := b.Live.List(ctx, volumes); err != nil {
		return nil, fmt.Errorf("listing NodeVolumes: %w", err)
	}
	var held []backend.Held
	recorded := map[string]bool{}
	for i := range volumes.Items {
		volume := &volumes.Items[i]
		recorded[volume.Name] = true
		if volume.Spec.Backend == b.name {
			held = append(held, backend.Held{
				ID: volume.Name, Claim: volume.Spec.ClaimRef, Snapshot: volume.Spec.SnapshotUID,
				Retained: volume.Labels[stowagev1alpha1.RetainedLabel] != "",
			})
		}
	}
	for _, volume := range found {
		if !recorded[volume.ID] {
			// A status lists an id once; a copy of the disk, on another node, may list it again.
			recorded[volume.ID] = true
			held = append(held, backend.Held{ID: volume.ID, Claim: volume.ClaimRef(), Node: volume.node})
		}
	}
	return held, nil
}

var _ backend.Remainer = (*localBackend)(nil)

// unrecorded is a volume that an agent found on its disk without a NodeVolume.
type unrecorded struct {
	stowagev1alpha1.UnrecordedVolume
	node string
	path stowagev1alpha1.AbsolutePath
}

// listUnrecorded lists what the agents of a backend found. It reads live: after a restart a cache is empty.
func listUnrecorded(ctx context.Context, live client.Reader, name string) ([]unrecorded, error) {
	disks := &stowagev1alpha1.NodeDiskList{}
	if err := live.List(ctx, disks, client.MatchingLabels{stowagev1alpha1.BackendLabel: name}); err != nil {
		return nil, fmt.Errorf("listing the disks of backend %s: %w", name, err)
	}
	var found []unrecorded
	for i := range disks.Items {
		disk := &disks.Items[i]
		if disk.Status.Unrecorded == nil {
			continue
		}
		for _, volume := range disk.Status.Unrecorded.Volumes {
			found = append(found, unrecorded{volume, disk.Spec.NodeName, disk.Spec.Path})
		}
	}
	return found, nil
}

// Remains returns where an agent found the data of a volume that has no NodeVolume.
func (b *localBackend) Remains(ctx context.Context, id string) (place string, err error) {
	found, err := b.found.Get(ctx, b.name)
	if err != nil {
		return "", err
	}
	for _, volume := range found {
		if volume.ID == id {
			return fmt.Sprintf("%s/%s on node %s", volume.path, volume.ID, volume.node), nil
		}
	}
	return "", nil
}

// retainUnrecorded writes nothing: data without a NodeVolume is never removed.
func (b *localBackend) retainUnrecorded(ctx context.Context, id string) (place string, err error) {
	place, err = b.Remains(ctx, id)
	if err != nil || place != "" {
		return place, err
	}
	return "", backend.NotFound.Errorf("there is no NodeVolume %s, and no node's agent found the volume on its disk: "+
		"its data was removed, was never made, or lies on a disk that isn't there", id)
}
