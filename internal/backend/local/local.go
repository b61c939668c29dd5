// Package local is the backend whose storage is disks local to nodes.
//
// It never touches a disk: it writes NodeVolume objects, and the agent of the
// node that such an object names makes or removes the volume and says so in the
// object's conditions. The object is the volume's record of who owns it.
package local

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
)

// Kind makes local backends.
type Kind struct {
	// Client reads nodes and NodeVolumes, from a cache where it has one, and
	// writes NodeVolumes.
	Client client.Client
	// Live reads NodeVolumes from the API server itself.
	Live client.Reader
	// Base is the folder on every node below which the node agents work.
	Base string
}

// Type is Local.
func (Kind) Type() stowagev1alpha1.BackendType { return stowagev1alpha1.LocalType }

// Open makes the backend of one StorageBackend object.
func (k Kind) Open(object *stowagev1alpha1.StorageBackend) (backend.Backend, error) {
	spec := *object.Spec.Local
	if !strings.HasPrefix(string(spec.Path), k.Base+"/") {
		return nil, backend.Invalid.Errorf("local.path %s is not below %s, the folder that the node agents work in: "+
			"choose a path below it, or give manager and node agents another folder (config/components/local-base does)",
			spec.Path, k.Base)
	}
	return &localBackend{Kind: k, name: object.Name, spec: spec}, nil
}

type localBackend struct {
	Kind
	name string
	spec stowagev1alpha1.LocalBackend
}

var _ backend.Prober = (*localBackend)(nil)

func (b *localBackend) Capabilities() backend.Capabilities {
	can := backend.Capabilities{
		// A volume is on one node, and who mounts there keeps it to one pod.
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce, corev1.ReadWriteOncePod},
		VolumeModes: []corev1.PersistentVolumeMode{corev1.PersistentVolumeFilesystem},
		Advisory:    true,
		Clones:      true,
	}
	if b.spec.Layout == stowagev1alpha1.LayoutImage {
		can.VolumeModes = append(can.VolumeModes, corev1.PersistentVolumeBlock)
		can.FSTypes = []string{"ext4", "xfs"}
		can.Advisory = false
	}
	return can
}

// Probe finds no fault where the backend has nodes, and volumes can be made on the
// disks of all of them.
func (b *localBackend) Probe(ctx context.Context) error {
	nodes, err := b.nodes(ctx)
	if err != nil {
		return err
	}
	if len(nodes) == 0 {
		return b.noNodes()
	}
	disks, err := b.disks(ctx)
	if err != nil {
		return err
	}
	return b.checkDisks(nodes, disks)
}

// Provision writes the NodeVolume, then waits for the node's agent. A volume
// that has no room stays asked for, unless another node has: the agent makes it when
// there is room.
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
			// That it is asked for is known: its deletion ends whatever its agent does.
			return nil, backend.Invalid.Errorf("volume %s isn't made any further: %w", volume.Name, err)
		}
		if errors.Is(err, backend.Exhausted) {
			return nil, b.move(ctx, request, volume, err)
		}
		return nil, err
	}
	return b.made(ctx, volume)
}

// Delete removes the NodeVolume; the agent removes the data before the object
// goes, and not while the volume is mounted.
func (b *localBackend) Delete(ctx context.Context, id string) error {
	volume := &stowagev1alpha1.NodeVolume{}
	if err := b.Live.Get(ctx, client.ObjectKey{Name: id}, volume); err != nil {
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("reading NodeVolume %s: %w", id, err)
	}
	if !strings.HasPrefix(id, backend.VolumeID(volume.Spec.ClaimRef.UID, 1)) || volume.Spec.Backend != b.name {
		return backend.Conflict.Errorf("NodeVolume %s belongs to backend %s and the claim with uid %s: it is not removed",
			id, volume.Spec.Backend, volume.Spec.ClaimRef.UID)
	}
	if err := b.condemn(ctx, volume); err != nil {
		return err
	}
	return backend.InProgress.Errorf("waiting for the agent of node %s to remove volume %s%s", volume.Spec.NodeName, id, lastWord(volume))
}

// move gives up a volume for which its node has no room, because its pod was placed on
// another, or another has room: nothing was made, and the next call asks that node.
func (b *localBackend) move(ctx context.Context, request backend.Request, volume *stowagev1alpha1.NodeVolume, refusal error) error {
	if volume.Spec.Source != "" && request.Node == nil {
		// What it is to be a copy of lies on no other node.
		return refusal
	}
	node, err := b.chooseOther(ctx, request, volume.Spec.NodeName, refusal)
	if err != nil {
		return err
	}
	if err := b.condemn(ctx, volume); err != nil {
		return err
	}
	return backend.InProgress.Errorf("waiting for node %s to let go of volume %s, which goes to node %s", volume.Spec.NodeName, volume.Name, node)
}

// condemn marks a volume's data for removal, then deletes the object. Agents
// remove no data without the mark, so that whoever deletes objects by hand, or
// the whole CRD, loses nothing. The version keeps a leader that is late from marking
// what was retained since it read.
func (b *localBackend) condemn(ctx context.Context, volume *stowagev1alpha1.NodeVolume) error {
	if !volume.Spec.RemoveData {
		before := volume.DeepCopy()
		volume.Spec.RemoveData = true
		err := b.Client.Patch(ctx, volume, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
		if apierrors.IsConflict(err) {
			return changedMeanwhile(volume.Name)
		}
		if err != nil {
			return fmt.Errorf("marking the data of NodeVolume %s for removal: %w", volume.Name, err)
		}
	}
	if !volume.DeletionTimestamp.IsZero() {
		return nil
	}
	// What decided, the owner, can't change: the uid is fence enough.
	if err := b.Client.Delete(ctx, volume, client.Preconditions{UID: &volume.UID}); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting NodeVolume %s: %w", volume.Name, err)
	}
	return nil
}

func (b *localBackend) made(ctx context.Context, volume *stowagev1alpha1.NodeVolume) (*backend.Volume, error) {
	if volume.Status.Capacity == nil {
		return nil, backend.InProgress.Errorf("waiting for the agent of node %s to say how much volume %s has", volume.Spec.NodeName, volume.Name)
	}
	node := &corev1.Node{}
	if err := b.Client.Get(ctx, client.ObjectKey{Name: volume.Spec.NodeName}, node); err != nil {
		return nil, fmt.Errorf("reading node %s: %w", volume.Spec.NodeName, err)
	}
	place := node.Labels[stowagev1alpha1.TopologyNodeLabel]
	if place == "" {
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
		NodeAffinity: only(place),
	}, nil
}

// outcome tells what the agent said: nil where the volume was made.
func outcome(volume *stowagev1alpha1.NodeVolume) error {
	provisioned := meta.FindStatusCondition(volume.Status.Conditions, stowagev1alpha1.ProvisionedCondition)
	if provisioned == nil {
		return backend.InProgress.Errorf("waiting for the agent of node %s to make volume %s", volume.Spec.NodeName, volume.Name)
	}
	if provisioned.Status == metav1.ConditionTrue {
		ready := meta.FindStatusCondition(volume.Status.Conditions, stowagev1alpha1.ReadyCondition)
		if ready != nil && ready.Reason == stowagev1alpha1.ReasonLost {
			return backend.Invalid.Errorf("volume %s was lost before it was used: %s", volume.Name, ready.Message)
		}
		return nil
	}
	return kindOf(provisioned.Reason).Errorf("node %s: %s", volume.Spec.NodeName, provisioned.Message)
}

// kindOf is what a reason of the agent means.
func kindOf(reason string) backend.ErrorKind {
	kind := map[string]backend.ErrorKind{
		stowagev1alpha1.ReasonExhausted:       backend.Exhausted,
		stowagev1alpha1.ReasonInvalid:         backend.Invalid,
		stowagev1alpha1.ReasonNotSupported:    backend.Invalid,
		stowagev1alpha1.ReasonPathOutsideBase: backend.Invalid,
		stowagev1alpha1.ReasonUnavailable:     backend.Unavailable,
	}[reason]
	return cmp.Or(kind, backend.InProgress)
}

// lastWord is what was last said of a volume that is to go: that its node is gone, or
// what the agent said, if it said anything.
func lastWord(volume *stowagev1alpha1.NodeVolume) string {
	if gone := meta.FindStatusCondition(volume.Status.Conditions, stowagev1alpha1.NodeGoneCondition); gone != nil {
		return ": " + gone.Message
	}
	ready := meta.FindStatusCondition(volume.Status.Conditions, stowagev1alpha1.ReadyCondition)
	if ready == nil || ready.Status == metav1.ConditionTrue || ready.Message == "" {
		return ""
	}
	return ": " + ready.Message
}

func only(place string) *corev1.VolumeNodeAffinity {
	return &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{
				Key:      stowagev1alpha1.TopologyNodeLabel,
				Operator: corev1.NodeSelectorOpIn,
				Values:   []string{place},
			}},
		}},
	}}
}
