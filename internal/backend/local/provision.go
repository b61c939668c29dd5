package local

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
)

// Provision writes the NodeVolume, then waits for the node's agent. A volume without room stays
// requested, unless another node has room: the agent makes it when there is room.
func (b *localBackend) Provision(ctx context.Context, request backend.Request) (*backend.Volume, error) {
	volume := &stowagev1alpha1.NodeVolume{}
	err := b.Client.Get(ctx, client.ObjectKey{Name: request.ID}, volume)
	switch {
	case apierrors.IsNotFound(err):
		return nil, b.create(ctx, request)
	case err != nil:
		return nil, fmt.Errorf("reading NodeVolume %s: %w", request.ID, err)
	case volume.Spec.ClaimRef != request.Claim:
		return nil, backend.Conflict.Errorf("NodeVolume %s belongs to claim %s/%s, uid %s",
			volume.Name, volume.Spec.ClaimRef.Namespace, volume.Spec.ClaimRef.Name, volume.Spec.ClaimRef.UID)
	case volume.Spec.Backend != b.name:
		return nil, backend.Conflict.Errorf("NodeVolume %s belongs to backend %s", volume.Name, volume.Spec.Backend)
	case request.Source != nil && volume.Spec.Source == "":
		return nil, backend.Conflict.Errorf("NodeVolume %s began empty, and is no copy", volume.Name)
	case !volume.DeletionTimestamp.IsZero():
		return nil, backend.InProgress.Errorf("waiting for the deletion of an earlier NodeVolume %s", volume.Name)
	}
	if err := outcome(volume); err != nil {
		if request.Unwanted {
			// The NodeVolume exists, so its deletion ends whatever its agent does.
			return nil, backend.Invalid.Errorf("volume %s isn't made any further: %w", volume.Name, err)
		}
		if errors.Is(err, backend.Exhausted) {
			return nil, b.reschedule(ctx, request, volume, err)
		}
		return nil, err
	}
	return b.made(ctx, volume)
}

// create creates the NodeVolume, by which a node's agent makes the volume.
func (b *localBackend) create(ctx context.Context, request backend.Request) error {
	if err := checkSize(request.Capacity); err != nil {
		return err
	}
	volume := b.newVolume(request)
	if err := b.place(ctx, volume, request); err != nil {
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

// place sets the node and the kind of a new volume.
func (b *localBackend) place(ctx context.Context, volume *stowagev1alpha1.NodeVolume, request backend.Request) (err error) {
	if request.Source != nil {
		return b.setSource(ctx, volume, request)
	}
	volume.Spec.Capacity = roundUp(volume, volume.Spec.Capacity)
	b.setImage(volume, request)
	volume.Spec.NodeName, err = b.chooseNode(ctx, request)
	return err
}

// newVolume is the volume of a request, on no node yet.
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
	// The finalizer is there from the start: added later, it could come after the agent made the
	// directory.
	controllerutil.AddFinalizer(volume, stowagev1alpha1.NodeVolumeFinalizer)
	return volume
}

// reschedule deletes a NodeVolume without room on its node if the pod was placed on another node,
// or another has room. Nothing was made; the next call requests it on that node.
func (b *localBackend) reschedule(ctx context.Context, request backend.Request, volume *stowagev1alpha1.NodeVolume, refusal error) error {
	if volume.Spec.Source != "" && request.Node == nil {
		// The source of a copy is on no other node.
		return refusal
	}
	node, err := b.chooseOtherNode(ctx, request, volume.Spec.NodeName, refusal)
	if err != nil {
		return err
	}
	if err := b.markForDeletion(ctx, volume); err != nil {
		return err
	}
	return backend.InProgress.Errorf("waiting for node %s to release volume %s, which goes to node %s", volume.Spec.NodeName, volume.Name, node)
}

// made is the volume of a NodeVolume that its agent has made.
func (b *localBackend) made(ctx context.Context, volume *stowagev1alpha1.NodeVolume) (*backend.Volume, error) {
	if volume.Status.Capacity == nil {
		return nil, backend.InProgress.Errorf("waiting for the agent of node %s to report the capacity of volume %s", volume.Spec.NodeName, volume.Name)
	}
	node := &corev1.Node{}
	if err := b.Client.Get(ctx, client.ObjectKey{Name: volume.Spec.NodeName}, node); err != nil {
		return nil, fmt.Errorf("reading node %s: %w", volume.Spec.NodeName, err)
	}
	topology := node.Labels[stowagev1alpha1.TopologyNodeLabel]
	if topology == "" {
		return nil, backend.Unavailable.Errorf("node %s has no label %s: is the node agent registered there?",
			node.Name, stowagev1alpha1.TopologyNodeLabel)
	}
	return &backend.Volume{
		Handle: volume.Name,
		Attributes: map[string]string{
			stowagev1alpha1.PathAttribute:   volume.Status.Path,
			stowagev1alpha1.LayoutAttribute: string(volume.Spec.Layout),
		},
		Capacity:     *volume.Status.Capacity,
		FSType:       volume.Spec.FSType,
		NodeAffinity: backend.AffinityToLabel(stowagev1alpha1.TopologyNodeLabel, topology),
	}, nil
}
