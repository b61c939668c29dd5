package volumeagent

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/node/localdisk/layout"
	"github.com/stowage-dev/stowage/internal/node/localdisk/spec"
)

// remove removes the volume's data, and then the finalizer. A removal that was
// cut off is continued where it stopped.
func (r *Reconciler) remove(ctx context.Context, stored, volume *stowagev1alpha1.NodeVolume) (ctrl.Result, error) {
	if !controllerutil.ContainsFinalizer(volume, stowagev1alpha1.NodeVolumeFinalizer) {
		return ctrl.Result{}, nil
	}
	if err := r.mayRemove(volume); err != nil {
		return r.finish(ctx, stored, volume, retryOf(err), err)
	}
	if err := r.awaitCopies(ctx, volume); err != nil {
		return r.finish(ctx, stored, volume, retryOf(err), err)
	}
	// Nothing was made for a spec that isn't served: there is nothing to remove.
	if spec.CheckSpec(volume) == nil {
		there, err := r.finder.onDisk(ctx, volume)
		if err == nil {
			err = r.beginRemoval(ctx, volume, there)
		}
		if errors.Is(err, errStale) {
			return ctrl.Result{RequeueAfter: staleRetry}, nil
		}
		if err == nil {
			err = r.Store.Remove(ctx, there)
		}
		if err != nil && (spec.IsProvisioned(volume) || !layout.IsOutside(err)) {
			return r.finish(ctx, stored, volume, retryOf(err), err)
		}
	}
	before := volume.DeepCopy()
	controllerutil.RemoveFinalizer(volume, stowagev1alpha1.NodeVolumeFinalizer)
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	err := r.Client.Patch(ctx, volume, patch)
	if apierrors.IsConflict(err) {
		return ctrl.Result{RequeueAfter: staleRetry}, nil
	}
	if client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, fmt.Errorf("removing the finalizer of NodeVolume %s: %w", volume.Name, err)
	}
	return ctrl.Result{}, nil
}

// mayRemove returns ErrKept for data that nobody ordered to be removed: its object
// was deleted by hand, or the whole CRD was.
func (r *Reconciler) mayRemove(volume *stowagev1alpha1.NodeVolume) error {
	served := spec.CheckSpec(volume) == nil
	if volume.Spec.RemoveData || !served && !spec.IsProvisioned(volume) {
		return nil
	}
	there := spec.VolumeOf(volume)
	if !spec.IsProvisioned(volume) {
		exists, err := r.Store.Base.Exists(there)
		if layout.IsOutside(err) {
			return nil
		}
		if err != nil || !exists {
			return err
		}
	}
	return keptIn(volume, there.Directory())
}
