package volumeagent

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/node/localdisk/layout"
	"github.com/stowage-dev/stowage/internal/node/localdisk/spec"
)

// Fields by which the API server selects volumes: of a node, and those that begin as
// copies of another.
const (
	nodeField   = "spec.nodeName"
	sourceField = "spec.source"
)

// sourceOf is the volume that another is to be made as a copy of; nil where that is to
// be empty, or is made already.
func (r *Reconciler) sourceOf(ctx context.Context, volume *stowagev1alpha1.NodeVolume) (*layout.Volume, error) {
	if volume.Spec.Source == "" {
		return nil, nil
	}
	if made, err := r.Store.Base.Exists(spec.VolumeOf(volume)); made || err != nil {
		return nil, err
	}
	source := &stowagev1alpha1.NodeVolume{}
	err := r.Live.Get(ctx, client.ObjectKey{Name: volume.Spec.Source}, source)
	switch {
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("%w: NodeVolume %s, which it was to be a copy of, is gone: create the claim anew, without dataSource",
			layout.ErrInvalid, volume.Spec.Source)
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
	// What is being removed isn't lost when it is missing: it doesn't come back.
	of.Provisioned = of.Provisioned && source.DeletionTimestamp.IsZero()
	return &of, nil
}

// checkSource says whether one volume may begin as a copy of another. Whose it is was
// checked by the manager, which knows claims; that it stays in its namespace, here too.
func checkSource(volume, source *stowagev1alpha1.NodeVolume) error {
	var reason string
	switch {
	case source.Name == volume.Name || spec.CheckSpec(source) != nil:
		reason = "is no other volume of Stowage's"
	case source.Spec.NodeName != volume.Spec.NodeName:
		reason = "lies on node " + source.Spec.NodeName
	case source.Spec.Backend != volume.Spec.Backend:
		reason = "belongs to backend " + source.Spec.Backend
	case source.Spec.ClaimRef.Namespace != volume.Spec.ClaimRef.Namespace:
		reason = "belongs to another namespace"
	case source.Spec.Layout != volume.Spec.Layout || source.Spec.VolumeMode != volume.Spec.VolumeMode || source.Spec.FSType != volume.Spec.FSType:
		reason = "is of another layout, volumeMode or fsType"
	default:
		return nil
	}
	return fmt.Errorf("%w: NodeVolume %s, which it is to be a copy of, %s", layout.ErrInvalid, source.Name, reason)
}

// awaitCopies is ErrInUse while a volume that is to go has yet to be copied. It reads
// live: a cache may not know of the copy yet.
func (r *Reconciler) awaitCopies(ctx context.Context, volume *stowagev1alpha1.NodeVolume) error {
	if !spec.IsProvisioned(volume) {
		return nil
	}
	list := &stowagev1alpha1.NodeVolumeList{}
	if err := r.Live.List(ctx, list, client.MatchingFields{nodeField: r.NodeName, sourceField: volume.Name}); err != nil {
		return fmt.Errorf("looking for copies of volume %s: %w", volume.Name, err)
	}
	for i := range list.Items {
		copied := &list.Items[i]
		if copied.Spec.Source == volume.Name && copied.DeletionTimestamp.IsZero() && !spec.IsProvisioned(copied) && !isRefused(copied) {
			return fmt.Errorf("%w: it is to be copied to NodeVolume %s, of claim %s/%s, first", layout.ErrInUse,
				copied.Name, copied.Spec.ClaimRef.Namespace, copied.Spec.ClaimRef.Name)
		}
	}
	return nil
}

// isRefused says whether a volume isn't made as it is asked for.
func isRefused(volume *stowagev1alpha1.NodeVolume) bool {
	provisioned := meta.FindStatusCondition(volume.Status.Conditions, stowagev1alpha1.ProvisionedCondition)
	return provisioned != nil && (provisioned.Reason == stowagev1alpha1.ReasonInvalid || provisioned.Reason == stowagev1alpha1.ReasonNotSupported)
}

// adopt has a found volume adopted, on the disk that was accepted.
func (r *Reconciler) adopt(ctx context.Context, volume *stowagev1alpha1.NodeVolume) error {
	there, err := r.finder.onAcceptedDisk(ctx, volume)
	if err != nil {
		return err
	}
	return r.Store.AdoptFound(ctx, there, spec.Others(ctx, r.Client, r.NodeName, volume.Name))
}
