package reclaim

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/storage/volume"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/index"
	"github.com/stowage-dev/stowage/internal/liveread"
	"github.com/stowage-dev/stowage/internal/migration"
	"github.com/stowage-dev/stowage/internal/provisioned"
	"github.com/stowage-dev/stowage/internal/uses"
)

// reclaimable tells whether a volume that no claim holds is to go, with its
// storage. Nobody but its claim's end condemns a volume: without a claimRef, or
// reserved by a person for a claim to come, it stays. What a person deleted can't
// be bound any more, whoever it is reserved for, and its policy holds.
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

// deletedElsewhere reports whether another program deletes the storage of a volume that
// no driver of Stowage made: the provisioner that made it or, of a static volume, the
// provisioner of its CSI driver. Those do so only while the volume is Released.
func deletedElsewhere(pv *corev1.PersistentVolume) bool {
	provisioner := pv.Annotations[volume.AnnDynamicallyProvisioned]
	switch {
	case migration.IsInTree(provisioner):
		return migration.DriverOf(provisioner) != ""
	case provisioner != "":
		return true
	default:
		return pv.Spec.CSI != nil && !backend.IsOurs(pv.Spec.CSI.Driver)
	}
}

// unused returns an error where a volume's storage is not to be removed yet, because it
// is another's, too, or attached.
func (r *Reclaimer) unused(ctx context.Context, pv *corev1.PersistentVolume) error {
	if err := r.alone(ctx, pv); err != nil {
		return err
	}
	return r.detached(ctx, pv)
}

// unusedIndeed asks the API server itself.
func (r *Reclaimer) unusedIndeed(ctx context.Context, pv *corev1.PersistentVolume) error {
	if err := r.aloneIndeed(ctx, pv); err != nil {
		return err
	}
	return r.detachedIndeed(ctx, pv)
}

// alone returns an error where another volume object stands for the same storage:
// its data would be removed too.
func (r *Reclaimer) alone(ctx context.Context, pv *corev1.PersistentVolume) error {
	volumes := &corev1.PersistentVolumeList{}
	if err := r.client.List(ctx, volumes, client.MatchingFields{index.VolumesByHandle: index.HandleOf(pv)[0]}, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing the volumes of handle %s: %w", pv.Spec.CSI.VolumeHandle, err)
	}
	return standsAlone(pv, liveread.GroupByHandle(volumes.Items))
}

// aloneIndeed asks the API server itself: a volume object that the cache has not seen
// yet would lose its data.
func (r *Reclaimer) aloneIndeed(ctx context.Context, pv *corev1.PersistentVolume) error {
	all, err := r.shared.Handles.Get(ctx, struct{}{})
	if err != nil {
		return err
	}
	return standsAlone(pv, all)
}

// standsAlone returns an error where another volume object stands for the same storage:
// its data would be removed too.
func standsAlone(pv *corev1.PersistentVolume, all liveread.ByHandle) error {
	other := all.Beside(pv)
	if other == "" {
		return nil
	}
	return backend.Conflict.Errorf("volume %s stands for the same storage: delete it first, or set the policy of %s to Retain", other, pv.Name)
}

// retainedFor is how long the data of a volume is still kept: from the end of its
// claim or, where that didn't condemn it, from its deletion. Without a window no
// clock is asked: the API server's may be ahead of this one.
func (r *Reclaimer) retainedFor(pv *corev1.PersistentVolume, object *stowagev1alpha1.StorageBackend) time.Duration {
	window, from := object.Spec.Deletion.RetainFor.Duration, pv.Status.LastPhaseTransitionTime
	// A Released volume is deleted by this reconciler when the window is over,
	// which must not open it again.
	if pv.Status.Phase != corev1.VolumeReleased && from.Before(pv.DeletionTimestamp) {
		from = pv.DeletionTimestamp
	}
	if window == 0 || from == nil {
		return window
	}
	return from.Add(window).Sub(r.clock.Now())
}
