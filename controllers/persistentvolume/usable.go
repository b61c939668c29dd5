package persistentvolume

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/event"
	"github.com/stowage-dev/stowage/internal/index"
	"github.com/stowage-dev/stowage/internal/provisioned"
)

// reportUnusable records once that a static volume promises what no volume of its backend can do.
// A claim binds to it all the same, and otherwise the first pod would be the one to find out.
func (r *Reconciler) reportUnusable(ctx context.Context, pv *corev1.PersistentVolume) (bool, ctrl.Result, error) {
	names := index.BackendOf(pv)
	if !pv.DeletionTimestamp.IsZero() || len(names) == 0 || provisioned.Here(pv) {
		return false, ctrl.Result{}, nil
	}
	object := &stowagev1alpha1.StorageBackend{}
	if err := r.client.Get(ctx, client.ObjectKey{Name: names[0]}, object); err != nil {
		return false, ctrl.Result{}, client.IgnoreNotFound(err)
	}
	opened, err := r.storage.Direct(object)
	if err != nil {
		return false, ctrl.Result{}, nil // Ready of the backend says it.
	}
	mode := corev1.PersistentVolumeFilesystem
	if pv.Spec.VolumeMode != nil {
		mode = *pv.Spec.VolumeMode
	}
	problem := ""
	if err := opened.Capabilities().CheckUse(pv.Spec.AccessModes, mode); err != nil {
		problem = err.Error()
	}
	if r.unusable.IsNew(client.ObjectKeyFromObject(pv), problem) && problem != "" {
		r.events.Eventf(pv, nil, corev1.EventTypeWarning, event.VolumeUnusable, "Check",
			"pods can't use the volume as its PersistentVolume says, with backend %s: %s", object.Name, problem)
	}
	return false, ctrl.Result{}, nil
}
