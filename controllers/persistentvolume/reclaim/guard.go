package reclaim

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/storage/volume"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/index"
	"github.com/stowage-dev/stowage/internal/liveread"
	"github.com/stowage-dev/stowage/internal/migration"
	"github.com/stowage-dev/stowage/internal/provisioned"
	"github.com/stowage-dev/stowage/internal/uses"
)

// reclaimable reports whether a volume without a claim must be deleted with its storage. Only
// the deletion of its claim leads to that. A volume without a claimRef, or reserved by a
// person for a future claim, stays. A volume that a person deleted cannot be bound any more,
// even if it is reserved, and its policy applies.
func reclaimable(pv *corev1.PersistentVolume) bool {
	switch {
	case !provisioned.MayDelete(pv):
		return false
	case pv.DeletionTimestamp.IsZero():
		return pv.Status.Phase == corev1.VolumeReleased && uses.WasClaimed(pv)
	default:
		return pv.Status.Phase != corev1.VolumeBound
	}
}

// deletedElsewhere reports whether another program deletes the storage of a volume that no
// driver made which Stowage serves. That is the provisioner that made it or, for a static volume, the
// provisioner of its CSI driver. They do so only while the volume is Released.
func (r *Reclaimer) deletedElsewhere(ctx context.Context, pv *corev1.PersistentVolume) (bool, error) {
	provisioner := pv.Annotations[volume.AnnDynamicallyProvisioned]
	switch {
	case migration.IsInTree(provisioner):
		return migration.DriverOf(provisioner) != "", nil
	case provisioner != "":
		return true, nil
	default:
		served, err := r.drivers.ServesVolume(ctx, pv)
		return pv.Spec.CSI != nil && !served, err
	}
}

// keeps reports whether a volume has the finalizer by which Stowage keeps it until its storage is
// gone. That of external-provisioner counts on volumes that a driver made which Stowage serves:
// on others it is another program's.
func (r *Reclaimer) keeps(ctx context.Context, pv *corev1.PersistentVolume) (bool, error) {
	switch finalizer := reclaimFinalizerOf(pv); {
	case !controllerutil.ContainsFinalizer(pv, finalizer):
		return false, nil
	case finalizer == stowagev1alpha1.ReclaimFinalizer:
		return true, nil
	default:
		return r.drivers.MadeVolume(ctx, pv)
	}
}

// reclaimFinalizerOf returns the finalizer that keeps a volume until its storage is gone.
func reclaimFinalizerOf(pv *corev1.PersistentVolume) string {
	if pv.Spec.CSI == nil || controllerutil.ContainsFinalizer(pv, stowagev1alpha1.ReclaimFinalizer) {
		return stowagev1alpha1.ReclaimFinalizer
	}
	return provisioned.ReclaimFinalizer(pv.Spec.CSI.Driver)
}

// unused returns an error if a volume's storage must not be removed yet, because another
// volume refers to it or it is attached.
func (r *Reclaimer) unused(ctx context.Context, pv *corev1.PersistentVolume) error {
	if err := r.alone(ctx, pv); err != nil {
		return err
	}
	return r.detached(ctx, pv)
}

// unusedLive does the same as of now.
func (r *Reclaimer) unusedLive(ctx context.Context, pv *corev1.PersistentVolume) error {
	if err := r.aloneLive(ctx, pv); err != nil {
		return err
	}
	return r.detachedLive(ctx, pv)
}

// alone returns an error if another PersistentVolume refers to the same storage: it would lose
// its data.
func (r *Reclaimer) alone(ctx context.Context, pv *corev1.PersistentVolume) error {
	volumes, err := index.VolumesOf(ctx, r.client, index.HandleOf(pv)[0])
	if err != nil {
		return err
	}
	return standsAlone(pv, liveread.GroupByHandle(volumes))
}

// aloneLive does the same as of now: the cache may not show a new PersistentVolume yet, which would lose its data. The volume itself
// must be as it was decided on: a user may have set Retain, or taken the finalizer off, since. Else the error is a conflict.
func (r *Reclaimer) aloneLive(ctx context.Context, pv *corev1.PersistentVolume) error {
	all, err := r.shared.Handles.Get(ctx, index.HandleOf(pv)[0])
	switch {
	case err != nil:
		return err
	case !all.Has(pv):
		return apierrors.NewConflict(corev1.Resource("persistentvolumes"), pv.Name, errors.New("the volume changed since its removal was decided"))
	}
	return standsAlone(pv, all)
}

// standsAlone returns an error if another PersistentVolume refers to the same storage: it
// would lose its data.
func standsAlone(pv *corev1.PersistentVolume, all liveread.ByHandle) error {
	other := all.Beside(pv)
	if other == "" {
		return nil
	}
	return backend.Conflict.Errorf("volume %s stands for the same storage: delete it first, or set the policy of %s to Retain", other, pv.Name)
}

// retainedFor returns how long the data of a volume is still kept. The window begins when the
// claim was deleted or, for a volume that was deleted without being Released, with that
// deletion. Without a window no clock is read: the API server's may be ahead of this one.
func (r *Reclaimer) retainedFor(pv *corev1.PersistentVolume, object *stowagev1alpha1.StorageBackend) time.Duration {
	window, from := object.Spec.Deletion.RetainFor.Duration, windowBegan(pv)
	if window == 0 || from == nil {
		return window
	}
	return from.Add(window).Sub(r.clock.Now())
}

// windowBegan returns when the undelete window of a volume began; nil if that is unknown.
func windowBegan(pv *corev1.PersistentVolume) *metav1.Time {
	from := pv.Status.LastPhaseTransitionTime
	// This reconciler deletes a Released volume at the end of the window, which must not start
	// the window again.
	if pv.Status.Phase != corev1.VolumeReleased && from.Before(pv.DeletionTimestamp) {
		return pv.DeletionTimestamp
	}
	return from
}
