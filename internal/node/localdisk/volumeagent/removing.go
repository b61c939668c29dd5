package volumeagent

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/node/localdisk/layout"
	"github.com/stowage-dev/stowage/internal/node/localdisk/spec"
)

// errStale is that what was read isn't so any more: another pass reads again.
var errStale = errors.New("the NodeVolume was changed meanwhile")

// beginRemoval writes status.removing before any data is touched, with the version of a
// live read. Until then the manager may take the order back; its write and this one
// exclude each other. A removal that goes on is checked against the live object, too: to
// a cache that is behind, an object that was made again looks like the one before.
func (r *Reconciler) beginRemoval(ctx context.Context, volume *stowagev1alpha1.NodeVolume, there layout.Volume) error {
	if !volume.Status.Removing {
		if err := r.Store.CheckRemovable(ctx, there); err != nil {
			return err
		}
	}
	live := &stowagev1alpha1.NodeVolume{}
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(volume), live); err != nil {
		if apierrors.IsNotFound(err) {
			return errStale
		}
		return fmt.Errorf("reading NodeVolume %s: %w", volume.Name, err)
	}
	if live.UID != volume.UID || live.DeletionTimestamp.IsZero() || r.mayRemove(live) != nil {
		return errStale
	}
	if !live.Status.Removing {
		before := live.DeepCopy()
		live.Status.Removing = true
		err := r.Client.Status().Patch(ctx, live, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
		if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
			return errStale
		}
		if err != nil {
			return fmt.Errorf("writing that the removal of NodeVolume %s begins: %w", volume.Name, err)
		}
	}
	volume.Status.Removing, volume.ResourceVersion = true, live.ResourceVersion
	return nil
}

// outlivesObject reports whether a volume was made whose object was deleted, and whose data
// stays. It is looked after like any other: pods may use it.
func outlivesObject(volume *stowagev1alpha1.NodeVolume) bool {
	return volume.DeletionTimestamp != nil && !volume.Spec.RemoveData && spec.IsProvisioned(volume) && spec.CheckSpec(volume) == nil
}

// keptIn tells of data whose removal wasn't ordered, and what can be done.
func keptIn(volume *stowagev1alpha1.NodeVolume, directory string) error {
	why := "nothing but deleting its claim removes it"
	if volume.Labels[stowagev1alpha1.RetainedLabel] != "" {
		why = "its PersistentVolume says Retain"
	}
	return fmt.Errorf("%w in %s, because %s: to remove it all the same set spec.removeData to true; "+
		"to keep it, and let this object go, remove the finalizer %s", layout.ErrKept, directory, why, stowagev1alpha1.NodeVolumeFinalizer)
}
