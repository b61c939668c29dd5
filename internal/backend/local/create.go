package local

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
)

// create asks a node's agent for a volume.
func (b *localBackend) create(ctx context.Context, request backend.Request) error {
	if err := checkSize(request.Capacity); err != nil {
		return err
	}
	volume := b.newVolume(request)
	if err := b.settle(ctx, volume, request); err != nil {
		return err
	}
	switch err := b.Client.Create(ctx, volume); {
	case apierrors.IsInvalid(err):
		return backend.Invalid.Errorf("creating NodeVolume %s: %w", request.ID, err)
	case client.IgnoreAlreadyExists(err) != nil:
		return fmt.Errorf("creating NodeVolume %s: %w", request.ID, err)
	}
	return backend.InProgress.Errorf("waiting for the agent of node %s to make volume %s", volume.Spec.NodeName, request.ID)
}

// settle says on which node a new volume is to be, and of what kind.
func (b *localBackend) settle(ctx context.Context, volume *stowagev1alpha1.NodeVolume, request backend.Request) (err error) {
	if request.Source != nil {
		return b.asCopy(ctx, volume, request)
	}
	volume.Spec.Capacity = possible(volume, volume.Spec.Capacity)
	b.asImage(volume, request.FSType)
	volume.Spec.NodeName, err = b.choose(ctx, request)
	return err
}

// newVolume is what a request asks for, on no node yet.
func (b *localBackend) newVolume(request backend.Request) *stowagev1alpha1.NodeVolume {
	volume := &stowagev1alpha1.NodeVolume{
		ObjectMeta: metav1.ObjectMeta{
			Name:   request.ID,
			Labels: map[string]string{stowagev1alpha1.BackendLabel: b.name},
		},
		Spec: stowagev1alpha1.NodeVolumeSpec{
			Backend:          b.name,
			Path:             b.spec.Path,
			Capacity:         request.Capacity,
			ReservedCapacity: b.spec.ReservedCapacity,
			VolumeMode:       request.VolumeMode,
			Layout:           b.spec.Layout,
			ClaimRef:         request.Claim,
		},
	}
	// The finalizer is there from the start: the agent may make the directory
	// before anybody could add it.
	controllerutil.AddFinalizer(volume, stowagev1alpha1.NodeVolumeFinalizer)
	return volume
}
