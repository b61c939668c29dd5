package reclaim

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/attach"
	"github.com/stowage-dev/stowage/internal/attachintent"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/index"
	"github.com/stowage-dev/stowage/internal/patch"
	"github.com/stowage-dev/stowage/internal/volume"
	"github.com/stowage-dev/stowage/internal/wake"
	"github.com/stowage-dev/stowage/internal/wrap"
)

// attacherFinalizerOf returns the finalizer of a PersistentVolume of a driver that is served, or
// of an existing disk, while it may be attached; "" for all others.
func (r *Reclaimer) attacherFinalizerOf(ctx context.Context, pv *corev1.PersistentVolume) (string, error) {
	if attach.IsInTreeDisk(pv) {
		return attachintent.Finalizer(stowagev1alpha1.GCEDriver), nil
	}
	if attaches, err := r.drivers.AttachesVolume(ctx, pv); !attaches || err != nil {
		return "", err
	}
	return attachintent.Finalizer(pv.Spec.CSI.Driver), nil
}

// RemoveAttachFinalizer removes the finalizer of a deleted volume without attachments. Until
// then the object is the record of what is attached.
func (r *Reclaimer) RemoveAttachFinalizer(ctx context.Context, pv *corev1.PersistentVolume) (bool, ctrl.Result, error) {
	if pv.DeletionTimestamp.IsZero() {
		return false, ctrl.Result{}, nil
	}
	finalizer, err := r.attacherFinalizerOf(ctx, pv)
	if err != nil || finalizer == "" || !controllerutil.ContainsFinalizer(pv, finalizer) {
		return false, ctrl.Result{}, err
	}
	if cached, err := r.cachedAttachments(ctx, pv); err != nil || len(cached) > 0 {
		return false, ctrl.Result{}, err
	}
	// The list from the cache only saves live reads.
	all, err := r.shared.Attachments.Get(ctx, struct{}{})
	if err != nil || len(all.Volume[pv.Name]) > 0 {
		return false, ctrl.Result{}, err
	}
	before := pv.DeepCopy()
	controllerutil.RemoveFinalizer(pv, finalizer)
	return false, ctrl.Result{}, patch.Volume(ctx, r.client, before, pv, "releasing detached")
}

// detached returns an error of kind InProgress while a volume has an attachment.
func (r *Reclaimer) detached(ctx context.Context, pv *corev1.PersistentVolume) error {
	if attaches, err := r.drivers.AttachesVolume(ctx, pv); !attaches || err != nil {
		return err
	}
	cached, err := r.cachedAttachments(ctx, pv)
	if err != nil || len(cached) == 0 {
		return err
	}
	return stillAttached(pv, &cached[0])
}

// cachedAttachments returns the attachments of a volume. They are shared with the cache and must
// not be changed.
func (r *Reclaimer) cachedAttachments(ctx context.Context, pv *corev1.PersistentVolume) ([]storagev1.VolumeAttachment, error) {
	attachments := &storagev1.VolumeAttachmentList{}
	err := r.client.List(ctx, attachments, client.MatchingFields{index.AttachmentsByVolume: pv.Name}, client.UnsafeDisableDeepCopy)
	return attachments.Items, wrap.Error(err, "listing the attachments of volume %s", pv.Name)
}

// detachedLive checks attachments and nodes, live. A node may use a volume although its
// attachment is gone, because a person may have removed the finalizer.
func (r *Reclaimer) detachedLive(ctx context.Context, pv *corev1.PersistentVolume) error {
	if attaches, err := r.drivers.AttachesVolume(ctx, pv); !attaches || err != nil {
		return err
	}
	all, err := r.shared.Attachments.Get(ctx, struct{}{})
	if err != nil {
		return err
	}
	for _, attachment := range slices.Concat(all.Volume[pv.Name], all.Handle[index.HandleOf(pv)[0]]) {
		return stillAttached(pv, attachment)
	}
	users, err := r.shared.Users.Get(ctx, struct{}{})
	if err != nil {
		return err
	}
	if node, used := users[volume.UniqueName(pv.Spec.CSI.Driver, pv.Spec.CSI.VolumeHandle)]; used {
		return backend.InProgress.Errorf("node %s still lists volume %s in its status: its storage is removed once it doesn't, or the Node is deleted", node, pv.Name)
	}
	return nil
}

func stillAttached(pv *corev1.PersistentVolume, attachment *storagev1.VolumeAttachment) error {
	return backend.InProgress.Errorf("volume %s has a VolumeAttachment to node %s: its storage is removed once %s is gone",
		pv.Name, attachment.Spec.NodeName, attachment.Name)
}

// VolumeOfAttachment wakes the volume that an attachment was of.
func VolumeOfAttachment(_ context.Context, object client.Object) []reconcile.Request {
	var requests []reconcile.Request
	for _, name := range index.AttachmentVolume(object) {
		requests = append(requests, wake.RequestNamed(name))
	}
	return requests
}
