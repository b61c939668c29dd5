package persistentvolume

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/storage/volume"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/stowage-dev/stowage/internal/migration"
	"github.com/stowage-dev/stowage/internal/patch"
	"github.com/stowage-dev/stowage/internal/provisioned"
)

// ensureMigrated marks a volume with the CSI driver that took over its in-tree provisioner:
// without the mark the sidecars of that driver ignore the volume. It removes the finalizers of
// deleters that do not delete this volume.
func (r *Reconciler) ensureMigrated(ctx context.Context, pv *corev1.PersistentVolume) (bool, ctrl.Result, error) {
	if pv.Annotations[volume.AnnDynamicallyProvisioned] == "" {
		return false, ctrl.Result{}, nil
	}
	before := pv.DeepCopy()
	changed := migration.MarkVolume(pv)
	for _, finalizer := range uselessFinalizers(pv) {
		changed = controllerutil.RemoveFinalizer(pv, finalizer) || changed
	}
	if !changed {
		return false, ctrl.Result{}, nil
	}
	return false, ctrl.Result{}, patch.Volume(ctx, r.client, before, pv, "marking the driver of")
}

// uselessFinalizers are those of a volume with an in-tree provisioner that no deleter removes.
// One is kubernetes.io/pv-controller, unless an event has yet to say that nothing deletes the
// storage. The other is external-provisioner's, if no CSI driver took over the type.
func uselessFinalizers(pv *corev1.PersistentVolume) []string {
	provisioner := pv.Annotations[volume.AnnDynamicallyProvisioned]
	switch {
	case !migration.IsInTree(provisioner):
		return nil
	case migration.DriverOf(provisioner) != "":
		return []string{volume.PVDeletionInTreeProtectionFinalizer}
	case provisioned.MayDelete(pv):
		return []string{volume.PVDeletionProtectionFinalizer}
	default:
		return []string{volume.PVDeletionInTreeProtectionFinalizer, volume.PVDeletionProtectionFinalizer}
	}
}
