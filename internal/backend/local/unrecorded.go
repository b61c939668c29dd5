package local

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
)

var _ backend.Remainer = (*localBackend)(nil)

// unrecorded is a volume that an agent found on its disk, and that no NodeVolume had
// then.
type unrecorded struct {
	stowagev1alpha1.UnrecordedVolume
	node string
	path stowagev1alpha1.AbsolutePath
}

// place is where its data lies.
func (u unrecorded) place() string { return fmt.Sprintf("%s/%s on node %s", u.path, u.ID, u.node) }

// held is what an audit is told of it. Its claim is named as far as that is known.
func (u unrecorded) held() backend.Held {
	return backend.Held{ID: u.ID, Claim: u.ClaimRef(), Node: u.node}
}

// unrecorded lists what the agents found. They are read live: after a restart a cache
// would know of nothing.
func (b *localBackend) unrecorded(ctx context.Context) ([]unrecorded, error) {
	disks := &stowagev1alpha1.NodeDiskList{}
	if err := b.Live.List(ctx, disks, client.MatchingLabels{stowagev1alpha1.BackendLabel: b.name}); err != nil {
		return nil, fmt.Errorf("listing the disks of backend %s: %w", b.name, err)
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

// Remains tells where an agent found the data of a volume that has no NodeVolume.
func (b *localBackend) Remains(ctx context.Context, id string) (place string, err error) {
	found, err := b.unrecorded(ctx)
	if err != nil {
		return "", err
	}
	for _, volume := range found {
		if volume.ID == id {
			return volume.place(), nil
		}
	}
	return "", nil
}

// retainUnrecorded needs no note: what has no NodeVolume is never removed.
func (b *localBackend) retainUnrecorded(ctx context.Context, id string) (place string, err error) {
	place, err = b.Remains(ctx, id)
	if err != nil || place != "" {
		return place, err
	}
	return "", backend.NotFound.Errorf("there is no NodeVolume %s, and no node's agent found the volume on its disk: "+
		"its data was removed, was never made, or lies on a disk that isn't there", id)
}
