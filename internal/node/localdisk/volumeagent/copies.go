package volumeagent

import (
	"cmp"
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/node/localdisk/layout"
	"github.com/stowage-dev/stowage/internal/node/localdisk/spec"
	"github.com/stowage-dev/stowage/internal/sharedread"
)

// Fields that the API server selects NodeVolumes by.
const (
	nodeField   = "spec.nodeName"
	sourceField = "spec.source"
)

// copySources finds the volumes that others begin as copies of.
type copySources struct {
	node string
	base layout.Base
	// live reads from the API server: a cache may not have the copy, or its source, yet.
	live client.Reader
	// awaited are the copies that the node has yet to make. Volumes that are removed at the same time share a read.
	awaited *sharedread.Reads[struct{}, copiesBySource]
}

// copiesBySource has one copy of each NodeVolume that has any, by the source's name.
type copiesBySource map[string]*stowagev1alpha1.NodeVolume

func newCopySources(node string, base layout.Base, live client.Reader) copySources {
	sources := copySources{node: node, base: base, live: live}
	sources.awaited = sharedread.New(func(ctx context.Context, _ struct{}) (copiesBySource, error) { return sources.listAwaited(ctx) })
	return sources
}

// sourceOf returns the volume that another is to be made as a copy of; nil where that begins
// empty, or exists already.
func (c copySources) sourceOf(ctx context.Context, volume *stowagev1alpha1.NodeVolume) (*layout.Volume, error) {
	if volume.Spec.Source == "" {
		return nil, nil
	}
	if made, err := c.base.Exists(spec.VolumeOf(volume)); made || err != nil {
		return nil, err
	}
	source := &stowagev1alpha1.NodeVolume{}
	err := c.live.Get(ctx, client.ObjectKey{Name: volume.Spec.Source}, source)
	switch {
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("%w: NodeVolume %s, which it was to be a copy of, is gone: %s", layout.ErrInvalid, volume.Spec.Source, adviceOn(volume))
	case err != nil:
		return nil, fmt.Errorf("reading NodeVolume %s, which is to be copied: %w", volume.Spec.Source, err)
	}
	if err := checkSource(volume, source); err != nil {
		return nil, err
	}
	if !spec.IsProvisioned(source) {
		return nil, fmt.Errorf("%w: NodeVolume %s, which is to be copied, isn't made yet", layout.ErrQueued, source.Name)
	}
	of := spec.VolumeOf(source)
	// A source that is being removed doesn't come back: it isn't reported as lost.
	of.Provisioned = of.Provisioned && source.DeletionTimestamp.IsZero()
	return &of, nil
}

// awaitCopies is ErrInUse while another volume has yet to be made as a copy of this one.
func (c copySources) awaitCopies(ctx context.Context, volume *stowagev1alpha1.NodeVolume) error {
	if !spec.IsProvisioned(volume) {
		return nil
	}
	awaited, err := c.awaited.Get(ctx, struct{}{})
	if err != nil {
		return fmt.Errorf("looking for copies of volume %s: %w", volume.Name, err)
	}
	if copied := awaited[volume.Name]; copied != nil {
		return fmt.Errorf("%w: it is to be copied to NodeVolume %s, %s, first", layout.ErrInUse, copied.Name, ownerOf(copied))
	}
	return nil
}

// listAwaited lists the copies that the node has yet to make. Those that it made keep the name of their source, and may be many.
func (c copySources) listAwaited(ctx context.Context) (copiesBySource, error) {
	list := &stowagev1alpha1.NodeVolumeList{}
	if err := c.live.List(ctx, list, copiesOn(c.node)); err != nil {
		return nil, err
	}
	awaited := copiesBySource{}
	for i := range list.Items {
		copied := &list.Items[i]
		if copied.Spec.Source != "" && copied.DeletionTimestamp.IsZero() && !spec.IsProvisioned(copied) && !isRefused(copied) {
			awaited[copied.Spec.Source] = copied
		}
	}
	return awaited, nil
}

// copiesOn selects a node's NodeVolumes that have a source.
func copiesOn(node string) client.MatchingFieldsSelector {
	return client.MatchingFieldsSelector{Selector: fields.AndSelectors(
		fields.OneTermEqualSelector(nodeField, node), fields.OneTermNotEqualSelector(sourceField, ""))}
}

// ownerOf says what a volume is for.
func ownerOf(volume *stowagev1alpha1.NodeVolume) string {
	if spec.IsSnapshot(volume) {
		return fmt.Sprintf("of the VolumeSnapshot with uid %s", volume.Spec.SnapshotUID)
	}
	return fmt.Sprintf("of claim %s/%s", volume.Spec.ClaimRef.Namespace, volume.Spec.ClaimRef.Name)
}

// adviceOn says what helps a volume whose source is gone.
func adviceOn(volume *stowagev1alpha1.NodeVolume) string {
	if spec.IsSnapshot(volume) {
		return "delete the VolumeSnapshot"
	}
	return "create the claim again, without dataSource"
}

// checkSource returns ErrInvalid where one volume can't begin as a copy of another. The manager,
// which knows the claims, checked it before; the namespace is checked here, too.
func checkSource(volume, source *stowagev1alpha1.NodeVolume) error {
	var reason string
	switch {
	case source.Name == volume.Name || spec.CheckSpec(source) != nil:
		reason = "is no other volume of Stowage's"
	case source.Spec.NodeName != volume.Spec.NodeName:
		reason = "lies on node " + source.Spec.NodeName
	case source.Spec.Backend != volume.Spec.Backend:
		reason = "belongs to backend " + source.Spec.Backend
	case source.Spec.ClaimRef.Namespace != cmp.Or(volume.Spec.SourceNamespace, volume.Spec.ClaimRef.Namespace):
		reason = "belongs to another namespace"
	case source.Spec.Layout != volume.Spec.Layout,
		!isOtherMode(volume, source) && (source.Spec.VolumeMode != volume.Spec.VolumeMode || source.Spec.FSType != volume.Spec.FSType):
		reason = "is of another layout, volumeMode or fsType"
	default:
		return nil
	}
	return fmt.Errorf("%w: NodeVolume %s, which it is to be a copy of, %s", layout.ErrInvalid, source.Name, reason)
}

// isOtherMode reports whether a claim is to have the image of a snapshot with another volumeMode. The manager has seen that an
// administrator lets it. Its file system is what a device holds, if any: it is never formatted.
func isOtherMode(volume, source *stowagev1alpha1.NodeVolume) bool {
	return spec.IsSnapshot(source) && !spec.IsSnapshot(volume) && source.Spec.Layout == stowagev1alpha1.LayoutImage &&
		source.Spec.VolumeMode != volume.Spec.VolumeMode
}

// isRefused reports whether a volume is never made, unless its spec is changed.
func isRefused(volume *stowagev1alpha1.NodeVolume) bool {
	provisioned := meta.FindStatusCondition(volume.Status.Conditions, stowagev1alpha1.ProvisionedCondition)
	return provisioned != nil && (provisioned.Reason == stowagev1alpha1.ReasonInvalid || provisioned.Reason == stowagev1alpha1.ReasonNotSupported)
}
