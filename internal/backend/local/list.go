package local

import (
	"context"
	"fmt"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
)

var _ backend.Lister = (*localBackend)(nil)

// List returns the volumes of all NodeVolumes of this backend, and those that agents
// found on their disks without one. They are read live: one that a cache has not seen
// yet would be taken for lost. Disks are read first: a NodeVolume that was made again
// since the agent looked is no longer without one.
func (b *localBackend) List(ctx context.Context) ([]backend.Held, error) {
	found, err := b.unrecorded(ctx)
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
				ID: volume.Name, Claim: volume.Spec.ClaimRef, Retained: volume.Labels[stowagev1alpha1.RetainedLabel] != "",
			})
		}
	}
	for _, volume := range found {
		if !recorded[volume.ID] {
			// The status lists an id once, though it may lie on a copy of the disk, too.
			recorded[volume.ID] = true
			held = append(held, volume.held())
		}
	}
	return held, nil
}
