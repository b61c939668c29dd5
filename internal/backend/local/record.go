package local

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/patch"
)

// ownVolume reads a NodeVolume live: nil where there is none. An owner that isn't this backend,
// or doesn't fit the id, is an error of kind Conflict.
func (b *localBackend) ownVolume(ctx context.Context, id string) (*stowagev1alpha1.NodeVolume, error) {
	volume := &stowagev1alpha1.NodeVolume{}
	err := b.Live.Get(ctx, client.ObjectKey{Name: id}, volume)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading NodeVolume %s: %w", id, err)
	case !backend.IsVolumeID(id, volume.Spec.ClaimRef.UID) || volume.Spec.Backend != b.name:
		return nil, backend.Conflict.Errorf("NodeVolume %s belongs to backend %s and the claim with uid %s: it is left alone",
			id, volume.Spec.Backend, volume.Spec.ClaimRef.UID)
	}
	return volume, nil
}

// patch writes what changed since before. With its resourceVersion a stale leader neither marks
// what was retained since, nor overwrites what the agent granted.
func (b *localBackend) patch(ctx context.Context, before, volume *stowagev1alpha1.NodeVolume, doing string) error {
	err := b.Client.Patch(ctx, volume, patch.Fenced(before))
	switch {
	case apierrors.IsConflict(err):
		return backend.InProgress.Errorf("NodeVolume %s has changed: it is read again", volume.Name)
	case err != nil:
		return fmt.Errorf("%s of NodeVolume %s: %w", doing, volume.Name, err)
	}
	return nil
}
