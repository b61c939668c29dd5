package local

import (
	"context"
	"fmt"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
)

var _ backend.Lister = (*localBackend)(nil)

// List returns the volumes of all LocalVolumes of this backend. They are read live:
// one that a cache has not seen yet would be taken for lost.
func (b *localBackend) List(ctx context.Context) ([]backend.Held, error) {
	volumes := &stowagev1alpha1.LocalVolumeList{}
	if err := b.Live.List(ctx, volumes); err != nil {
		return nil, fmt.Errorf("listing LocalVolumes: %w", err)
	}
	var held []backend.Held
	for i := range volumes.Items {
		if volume := &volumes.Items[i]; volume.Spec.Backend == b.name {
			held = append(held, backend.Held{
				ID: volume.Name, Claim: volume.Spec.ClaimRef, Retained: volume.Labels[stowagev1alpha1.RetainedLabel] != "",
			})
		}
	}
	return held, nil
}
