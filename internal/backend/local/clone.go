package local

import (
	"cmp"
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
)

// setSource makes a new NodeVolume a copy of another, or of a snapshot: on its node, in its folder and of its kind,
// whatever the backend makes now.
func (b *localBackend) setSource(ctx context.Context, volume *stowagev1alpha1.NodeVolume, request backend.Request) error {
	source, err := b.source(ctx, request)
	if err != nil {
		return err
	}
	if err := b.checkSameNode(ctx, request, source); err != nil {
		return err
	}
	beginAs(volume, source)
	if source.Spec.VolumeMode != request.VolumeMode {
		// What a device holds isn't known: its node looks when it mounts it.
		volume.Spec.FSType = b.fsTypeOf(request)
	}
	if source.Spec.ClaimRef.Namespace != request.Claim.Namespace {
		volume.Spec.SourceNamespace = source.Spec.ClaimRef.Namespace
	}
	// The source may have grown by more than its claim says yet.
	volume.Spec.Capacity = roundUp(volume, larger(request.Capacity, copied(source)))
	return nil
}

// copied is what a copy of a volume needs at least: what the volume has or, where that is no limit, what it uses.
func copied(source *stowagev1alpha1.NodeVolume) resource.Quantity {
	has := ptr.Deref(source.Status.Capacity, source.Spec.Capacity)
	if used := source.Status.Used; used != nil && !source.Status.Enforced {
		return larger(has, *used)
	}
	return has
}

// beginAs makes a new NodeVolume a copy of another: on its node, in its folder and of its kind.
func beginAs(volume, source *stowagev1alpha1.NodeVolume) {
	volume.Spec.Source = source.Name
	volume.Spec.NodeName, volume.Spec.Path = source.Spec.NodeName, source.Spec.Path
	volume.Spec.Layout, volume.Spec.FSType, volume.Spec.Allocation = source.Spec.Layout, source.Spec.FSType, source.Spec.Allocation
}

// source reads the volume to copy, live. A volume that was neither made for the named claim nor
// bound to it is a Conflict. An id alone gives no access to the data of others.
func (b *localBackend) source(ctx context.Context, request backend.Request) (*stowagev1alpha1.NodeVolume, error) {
	id, claim := request.Source.ID, request.Source.Claim
	if request.Source.Snapshot != "" {
		return b.snapshotToRestore(ctx, request)
	}
	if id == "" {
		return nil, backend.Invalid.Errorf("the volume that was to be copied is gone, and no copy was begun: create the claim again, without dataSource")
	}
	source := &stowagev1alpha1.NodeVolume{}
	err := b.Live.Get(ctx, client.ObjectKey{Name: id}, source)
	switch {
	case apierrors.IsNotFound(err):
		return nil, backend.Invalid.Errorf("there is no NodeVolume %s, which was to be copied: create the claim again, without dataSource", id)
	case err != nil:
		return nil, fmt.Errorf("reading NodeVolume %s, which is to be copied: %w", id, err)
	case claim.Namespace != request.SourceNamespace():
		return nil, backend.Conflict.Errorf("NodeVolume %s, which was to be copied, wasn't made for claims of namespace %s", id, request.SourceNamespace())
	case source.Spec.Backend != b.name:
		return nil, backend.Conflict.Errorf("NodeVolume %s, which was to be copied, belongs to backend %s", id, source.Spec.Backend)
	}
	if source.Spec.ClaimRef != claim {
		if err := b.checkBound(ctx, source, claim); err != nil {
			return nil, err
		}
	}
	return source, checkCopyable(source, request)
}

// checkBound checks that a volume that was made for another claim is bound to this one: restored
// after the other claim was deleted. Its PersistentVolume, which users can't write, proves it. It
// is read live.
func (b *localBackend) checkBound(ctx context.Context, source *stowagev1alpha1.NodeVolume, claim stowagev1alpha1.ClaimReference) error {
	pv := &corev1.PersistentVolume{}
	err := b.Live.Get(ctx, client.ObjectKey{Name: source.Name}, pv)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading volume %s, which is to be copied: %w", source.Name, err)
	}
	bound, csi := pv.Spec.ClaimRef, pv.Spec.CSI
	switch {
	case err != nil || !pv.DeletionTimestamp.IsZero() || csi == nil || csi.Driver != stowagev1alpha1.LocalDriver || csi.VolumeHandle != source.Name,
		bound == nil || bound.UID != claim.UID || bound.Namespace != claim.Namespace || bound.Name != claim.Name:
		return backend.Conflict.Errorf("NodeVolume %s, which was to be copied, wasn't made for claim %s/%s, uid %s, nor bound to it",
			source.Name, claim.Namespace, claim.Name, claim.UID)
	case source.Spec.ClaimRef.Namespace != claim.Namespace:
		return backend.Invalid.Errorf("volume %s, which was to be copied, was made for a claim of namespace %s, from which nothing is copied: "+
			"create the claim without dataSource, and copy the data", source.Name, source.Spec.ClaimRef.Namespace)
	}
	return nil
}

// checkCopyable returns an error where a volume holds nothing that can be copied.
func checkCopyable(source *stowagev1alpha1.NodeVolume, request backend.Request) error {
	switch {
	case !source.DeletionTimestamp.IsZero() || source.Spec.RemoveData:
		return backend.Invalid.Errorf("volume %s, which was to be copied, is being removed: create the claim again, without dataSource", source.Name)
	case source.Spec.VolumeMode != request.VolumeMode && !request.Source.AnyMode:
		return backend.Invalid.Errorf("volume %s, which is to be copied, has volumeMode %s: ask for the same", source.Name, source.Spec.VolumeMode)
	case source.Spec.VolumeMode != request.VolumeMode && source.Spec.Layout != stowagev1alpha1.LayoutImage:
		return backend.Invalid.Errorf("volume %s, which is to be copied, has layout %s, and only an image can have another volumeMode: ask for %s",
			source.Name, source.Spec.Layout, source.Spec.VolumeMode)
	case source.Spec.VolumeMode == request.VolumeMode && request.FSType != "" && source.Spec.FSType != request.FSType:
		return backend.Invalid.Errorf("volume %s, which is to be copied, has the file system %s, and the StorageClass names %s: "+
			"a copy has that of its source, so use another class", source.Name, cmp.Or(source.Spec.FSType, "of its disk"), request.FSType)
	case !isMade(source):
		return backend.Unavailable.Errorf("volume %s, which is to be copied, isn't made yet", source.Name)
	case isLost(source):
		return backend.Unavailable.Errorf("volume %s, which is to be copied, is lost%s", source.Name, lastMessage(source))
	}
	return nil
}

// checkSameNode checks that the claim's volume can be on the node of its source. Nothing is copied
// from one node to another.
func (b *localBackend) checkSameNode(ctx context.Context, request backend.Request, source *stowagev1alpha1.NodeVolume) error {
	lies := source.Spec.NodeName
	if request.Node != nil && request.Node.Name != lies {
		return backend.WrongNode.Errorf("volume %s, which is to be copied, lies on node %s, and the pod was placed on node %s: "+
			"a copy is made where its source is, so place the pod there (nodeSelector)", source.Name, lies, request.Node.Name)
	}
	node := &corev1.Node{}
	err := b.Client.Get(ctx, client.ObjectKey{Name: lies}, node)
	switch {
	case apierrors.IsNotFound(err) || err == nil && !b.matches(node):
		return backend.Unavailable.Errorf("node %s, on which the volume lies that is to be copied, isn't a node of backend %s any more", lies, b.name)
	case err != nil:
		return fmt.Errorf("reading node %s: %w", lies, err)
	case !backend.Allows(request.Topologies, node):
		return backend.Invalid.Errorf("node %s, on which the volume lies that is to be copied, is not within the allowedTopologies "+
			"of the claim's StorageClass: use the class of its source", lies)
	}
	return nil
}
