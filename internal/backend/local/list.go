package local

import (
	"context"
	"fmt"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
)

var _ backend.Lister = (*localBackend)(nil)

// List returns the volumes of this backend's NodeVolumes, and the volumes without a NodeVolume
// that agents found on their disks. It reads live: a volume that a cache has not seen yet would
// count as lost. It reads disks first: a NodeVolume may have been created since the agent's report.
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
			// A status lists an id once; a copy of the disk, on another node, may list it again.
			recorded[volume.ID] = true
			held = append(held, backend.Held{ID: volume.ID, Claim: volume.ClaimRef(), Node: volume.node})
		}
	}
	return held, nil
}
