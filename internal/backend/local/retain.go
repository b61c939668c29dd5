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

// Retain labels the LocalVolume. An order to remove its data can't be taken back: the
// agent may be carrying it out.
func (b *localBackend) Retain(ctx context.Context, id string) (string, error) {
	volume := &stowagev1alpha1.LocalVolume{}
	err := b.Live.Get(ctx, client.ObjectKey{Name: id}, volume)
	switch {
	case apierrors.IsNotFound(err):
		return "", backend.NotFound.Errorf("there is no LocalVolume %s: its data is gone, or was never made", id)
	case err != nil:
		return "", fmt.Errorf("reading LocalVolume %s: %w", id, err)
	case !strings.HasPrefix(id, backend.VolumeID(volume.Spec.ClaimRef.UID, 1)) || volume.Spec.Backend != b.name:
		return "", backend.Conflict.Errorf("LocalVolume %s belongs to backend %s and the claim with uid %s: it is left as it is",
			id, volume.Spec.Backend, volume.Spec.ClaimRef.UID)
	case volume.Spec.RemoveData:
		return "", backend.NotFound.Errorf("it is too late to keep volume %s: the agent of node %s is removing it", id, volume.Spec.NodeName)
	}
	place := fmt.Sprintf("%s on node %s (LocalVolume %s)", volume.Status.Path, volume.Spec.NodeName, volume.Name)
	if volume.Labels[stowagev1alpha1.RetainedLabel] != "" {
		return place, nil
	}
	before := volume.DeepCopy()
	if volume.Labels == nil {
		volume.Labels = map[string]string{}
	}
	volume.Labels[stowagev1alpha1.RetainedLabel] = "true"
	err = b.Client.Patch(ctx, volume, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	switch {
	case apierrors.IsConflict(err):
		return "", backend.InProgress.Errorf("LocalVolume %s was changed meanwhile: it is looked at again", id)
	case err != nil:
		return "", fmt.Errorf("keeping the data of LocalVolume %s: %w", id, err)
	}
	return place, nil
}
