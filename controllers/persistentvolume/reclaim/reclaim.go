// Package reclaim applies the reclaim policy to the storage of a volume, once no claim holds
// it. It deletes the storage after the backend's undelete window, or keeps it. It deletes only
// after reads as of now confirm that no claim, no other PersistentVolume, no attachment and no node
// has the storage.
package reclaim

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/component-helpers/storage/volume"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/event"
	"github.com/stowage-dev/stowage/internal/index"
	"github.com/stowage-dev/stowage/internal/patch"
	"github.com/stowage-dev/stowage/internal/provisioned"
	"github.com/stowage-dev/stowage/internal/uses"
	"github.com/stowage-dev/stowage/internal/wake"
	"github.com/stowage-dev/stowage/internal/wrap"
)

// Reclaim removes the storage of a released volume of policy Delete, in an order that survives
// a crash anywhere and two leaders at once:
//
//	decide
//	DELETE the PersistentVolume, with the uid and resourceVersion that was decided on: the
//	  point of no return. Our finalizer keeps the object, and nothing binds it again
//	decide again, from what the cache shows since that very write, or from a live read later than that
//	look whether the volume is that version still, and no other has its storage, as of now: a user may have set Retain since
//	remove the storage
//	remove the finalizer
func (r *Reclaimer) Reclaim(ctx context.Context, pv *corev1.PersistentVolume) (bool, ctrl.Result, error) {
	if kept, err := r.keeps(ctx, pv); !kept || err != nil {
		if err != nil {
			return true, ctrl.Result{}, err
		}
		result, err := r.reclaimForeign(ctx, pv)
		return true, result, err
	}
	if pv.DeletionTimestamp.IsZero() && !reclaimable(pv) {
		return true, ctrl.Result{}, r.hideWindow(ctx, pv)
	}
	current, err := r.current(ctx, pv)
	if current == nil || err != nil {
		return true, ctrl.Result{}, err
	}
	result, err := r.decide(ctx, current)
	return true, result, err
}

// decide removes or retains the storage of a volume, if no claim holds it.
func (r *Reclaimer) decide(ctx context.Context, pv *corev1.PersistentVolume) (ctrl.Result, error) {
	held, err := uses.Claimed(ctx, r.live, r.shared.Claims, pv)
	switch {
	case err != nil || held:
		return ctrl.Result{}, err
	case !pv.DeletionTimestamp.IsZero() && !provisioned.MayDelete(pv):
		return r.retain(ctx, pv)
	case !reclaimable(pv):
		return ctrl.Result{}, nil
	}
	return r.removeStorage(ctx, pv)
}

// current returns a volume as it is decided on, or nil if it is gone. One that is being deleted is read live. Of another the
// version at hand is enough: the API server deletes no other one.
func (r *Reclaimer) current(ctx context.Context, pv *corev1.PersistentVolume) (*corev1.PersistentVolume, error) {
	if pv.DeletionTimestamp.IsZero() {
		return pv, nil
	}
	current := &corev1.PersistentVolume{}
	err := r.live.Get(ctx, client.ObjectKeyFromObject(pv), current)
	if err != nil || current.UID != pv.UID {
		return nil, wrap.Error(client.IgnoreNotFound(err), "reading volume %s", pv.Name)
	}
	return current, nil
}

// removeStorage removes the storage of a volume without a claim, after the undelete window.
func (r *Reclaimer) removeStorage(ctx context.Context, pv *corev1.PersistentVolume) (ctrl.Result, error) {
	object, opened, err := r.backendFor(ctx, pv)
	if err != nil {
		return ctrl.Result{}, r.failDelete(pv, err)
	}
	if left := r.retainedFor(pv, object); left > 0 {
		return r.keep(ctx, pv, object, left)
	}
	if err := r.unused(ctx, pv); err != nil {
		return r.waitOrFail(pv, err)
	}
	if pv.DeletionTimestamp.IsZero() {
		deleted, err := r.delete(ctx, pv)
		if deleted == nil || err != nil {
			return ctrl.Result{}, err
		}
		return r.decide(ctx, deleted)
	}
	switch err := r.unusedLive(ctx, pv); {
	case apierrors.IsConflict(err):
		return ctrl.Result{}, err
	case err != nil:
		return r.waitOrFail(pv, err)
	}
	if err := opened.Delete(ctx, pv.Spec.CSI.VolumeHandle); err != nil {
		return r.waitOrFail(pv, err)
	}
	remains, err := backend.Remains(ctx, opened, pv.Spec.CSI.VolumeHandle)
	if err != nil {
		return r.waitOrFail(pv, err)
	}
	if err := r.releaseRemoved(ctx, pv); err != nil {
		return ctrl.Result{}, err
	}
	r.recordEnd(pv, object, remains)
	return ctrl.Result{}, nil
}

// delete deletes a volume, if it is the version that was decided on still. It returns the volume as the cache shows it since that
// write; aloneLive compares that with what is now. It returns nil if the next pass goes on: the cache is late, or other finalizers
// have to go before.
func (r *Reclaimer) delete(ctx context.Context, pv *corev1.PersistentVolume) (*corev1.PersistentVolume, error) {
	err := r.client.Delete(ctx, pv, client.Preconditions{UID: &pv.UID, ResourceVersion: &pv.ResourceVersion})
	if err != nil {
		return nil, wrap.Error(client.IgnoreNotFound(err), "deleting volume %s", pv.Name)
	}
	deleted := &corev1.PersistentVolume{}
	err = r.client.Get(ctx, client.ObjectKeyFromObject(pv), deleted)
	if err != nil || deleted.UID != pv.UID || deleted.DeletionTimestamp.IsZero() || !goesWith(deleted) {
		return nil, wrap.Error(client.IgnoreNotFound(err), "reading volume %s", pv.Name)
	}
	return deleted, nil
}

// goesWith reports whether Stowage still keeps a volume, and the last write removes all of its finalizers.
func goesWith(pv *corev1.PersistentVolume) bool {
	return controllerutil.ContainsFinalizer(pv, reclaimFinalizerOf(pv)) && !slices.ContainsFunc(pv.Finalizers, func(finalizer string) bool {
		return finalizer != reclaimFinalizerOf(pv) && finalizer != uses.VolumeProtection
	})
}

// recordEnd records what became of a volume's storage. A backend without a record of it removed
// nothing.
func (r *Reclaimer) recordEnd(pv *corev1.PersistentVolume, object *stowagev1alpha1.StorageBackend, remains string) {
	if remains != "" {
		r.events.Eventf(pv, nil, corev1.EventTypeWarning, event.VolumeFailedDelete, "Delete",
			"volume %s goes, and its data stays in %s: StorageBackend %s has no record of it any more. Remove it by hand, or make a PersistentVolume "+
				"with volumeHandle %s to have it back", pv.Name, remains, object.Name, pv.Spec.CSI.VolumeHandle)
		return
	}
	events := event.Since(pv.DeletionTimestamp.Time, r.events)
	events.Eventf(pv, nil, corev1.EventTypeNormal, event.VolumeDeleted, "Delete",
		"StorageBackend %s holds no storage of volume %s any more", object.Name, pv.Name)
}

func (r *Reclaimer) backendFor(ctx context.Context, pv *corev1.PersistentVolume) (*stowagev1alpha1.StorageBackend, backend.Backend, error) {
	names := index.BackendOf(pv)
	if len(names) == 0 {
		return nil, nil, backend.Invalid.Errorf("the volume names no StorageBackend")
	}
	if !backend.IsOurs(pv.Spec.CSI.Driver) && pv.Annotations[volume.AnnDynamicallyProvisioned] != pv.Spec.CSI.Driver {
		return nil, nil, backend.Invalid.Errorf("the annotation %s doesn't say that driver %s made the volume, and storage that people made is never removed: "+
			"set the volume's policy to Retain", volume.AnnDynamicallyProvisioned, pv.Spec.CSI.Driver)
	}
	object := &stowagev1alpha1.StorageBackend{}
	if err := r.client.Get(ctx, client.ObjectKey{Name: names[0]}, object); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, nil, fmt.Errorf("StorageBackend %s is gone: create it again, or set the volume's policy to Retain", names[0])
		}
		return nil, nil, fmt.Errorf("reading StorageBackend %s: %w", names[0], err)
	}
	if backend.DriverOf(object) != pv.Spec.CSI.Driver {
		return nil, nil, backend.Invalid.Errorf("StorageBackend %s has volumes of driver %s, and the volume is one of %s",
			object.Name, backend.DriverOf(object), pv.Spec.CSI.Driver)
	}
	opened, err := r.open(pv, object)
	return object, opened, err
}

// waitOrFail records what the removal of storage waits for, or why it failed.
func (r *Reclaimer) waitOrFail(pv *corev1.PersistentVolume, err error) (ctrl.Result, error) {
	if backend.Unfinished(err) {
		r.record(pv, corev1.EventTypeNormal, event.VolumeDelete, err)
		return ctrl.Result{RequeueAfter: wake.WithoutAnswer}, nil
	}
	return ctrl.Result{}, r.failDelete(pv, err)
}

// failDelete records on the volume why its storage is still there, and returns the error, so
// that it is retried with backoff.
func (r *Reclaimer) failDelete(pv *corev1.PersistentVolume, err error) error {
	r.record(pv, corev1.EventTypeWarning, event.VolumeFailedDelete, err)
	return fmt.Errorf("deleting the storage of volume %s: %w", pv.Name, err)
}

// reclaimForeign reclaims released volumes that Stowage doesn't keep. It recycles those
// of policy Recycle, if possible. Their own provisioner, or a person, deletes the others.
func (r *Reclaimer) reclaimForeign(ctx context.Context, pv *corev1.PersistentVolume) (ctrl.Result, error) {
	if r.scope == reconciler.ClassesScope || !pv.DeletionTimestamp.IsZero() || pv.Status.Phase != corev1.VolumeReleased {
		return ctrl.Result{}, nil
	}
	provisioner := pv.Annotations[volume.AnnDynamicallyProvisioned]
	switch policy := pv.Spec.PersistentVolumeReclaimPolicy; {
	case policy == corev1.PersistentVolumeReclaimRecycle && provisioner == "":
		return r.recycler.Recycle(ctx, pv)
	case policy == corev1.PersistentVolumeReclaimDelete:
		if elsewhere, err := r.deletedElsewhere(ctx, pv); elsewhere || err != nil {
			return ctrl.Result{}, err
		}
		return ctrl.Result{}, r.failForeignDelete(ctx, pv, provisioner)
	default:
		return ctrl.Result{}, nil
	}
}

func (r *Reclaimer) failForeignDelete(ctx context.Context, pv *corev1.PersistentVolume, provisioner string) error {
	origin := "a volume that was made by hand"
	if provisioner != "" {
		origin = "a volume of provisioner " + provisioner + ", which is not part of Kubernetes any more"
	}
	message := "nothing in this cluster can do what the reclaim policy Delete asks for " + origin +
		": save or remove its data by hand, then delete the PersistentVolume"
	if err := patch.SetPhase(ctx, r.client, pv, corev1.VolumeFailed, message); err != nil {
		return err
	}
	r.events.Eventf(pv, nil, corev1.EventTypeWarning, event.VolumeFailedDelete, "Reclaim", "%s", message)
	return nil
}
