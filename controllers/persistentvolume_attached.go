package controllers

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/attach"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/volume"
)

// usersOf are the names of the nodes that use a volume, or were told that they can, by
// what the kubelet calls it.
type usersOf map[corev1.UniqueVolumeName]string

func listUsers(ctx context.Context, live client.Reader) (usersOf, error) {
	nodes := &corev1.NodeList{}
	if err := live.List(ctx, nodes); err != nil {
		return nil, fmt.Errorf("listing the nodes: %w", err)
	}
	found := usersOf{}
	for i := range nodes.Items {
		for _, name := range nodes.Items[i].Status.VolumesInUse {
			found[name] = nodes.Items[i].Name
		}
		for _, attached := range nodes.Items[i].Status.VolumesAttached {
			found[attached.Name] = nodes.Items[i].Name
		}
	}
	return found, nil
}

func needsAttach(pv *corev1.PersistentVolume) bool {
	return pv.Spec.CSI != nil && backend.NeedsAttach(pv.Spec.CSI.Driver)
}

// attacherFinalizerOf is the finalizer that a volume object of a driver of ours, or of an
// existing disk, has while it may be attached; "" for all others.
func attacherFinalizerOf(pv *corev1.PersistentVolume) string {
	switch {
	case needsAttach(pv):
		return attacherFinalizer(pv.Spec.CSI.Driver)
	case attach.IsExisting(pv):
		return attacherFinalizer(stowagev1alpha1.GCEDriver)
	default:
		return ""
	}
}

// removeAttachFinalizer lets a deleted volume go that no attachment is of: until then
// the object says what is attached.
func (r *PersistentVolumeReconciler) removeAttachFinalizer(ctx context.Context, pv *corev1.PersistentVolume) (bool, ctrl.Result, error) {
	finalizer := attacherFinalizerOf(pv)
	if pv.DeletionTimestamp.IsZero() || finalizer == "" || !controllerutil.ContainsFinalizer(pv, finalizer) {
		return false, ctrl.Result{}, nil
	}
	attachments := &storagev1.VolumeAttachmentList{}
	if err := r.client.List(ctx, attachments, client.MatchingFields{attachmentsByVolume: pv.Name}, client.UnsafeDisableDeepCopy); err != nil {
		return false, ctrl.Result{}, fmt.Errorf("listing the attachments of volume %s: %w", pv.Name, err)
	}
	if len(attachments.Items) > 0 {
		return false, ctrl.Result{}, nil
	}
	// The cache only saves the question.
	all, err := r.shared.attachments.Get(ctx, struct{}{})
	if err != nil || len(all.volume[pv.Name]) > 0 {
		return false, ctrl.Result{}, err
	}
	before := pv.DeepCopy()
	controllerutil.RemoveFinalizer(pv, finalizer)
	return false, ctrl.Result{}, r.patch(ctx, pv, before, "letting go of detached")
}

// detached returns an error of kind InProgress while there is an attachment of a volume.
func (r *PersistentVolumeReconciler) detached(ctx context.Context, pv *corev1.PersistentVolume) error {
	if !needsAttach(pv) {
		return nil
	}
	attachments := &storagev1.VolumeAttachmentList{}
	if err := r.client.List(ctx, attachments, client.MatchingFields{attachmentsByVolume: pv.Name}, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing the attachments of volume %s: %w", pv.Name, err)
	}
	for i := range attachments.Items {
		return stillAttached(pv, &attachments.Items[i])
	}
	return nil
}

// detachedIndeed asks the API server itself, and the nodes: one that uses a volume may
// do so though its attachment is gone, because somebody took the finalizer off.
func (r *PersistentVolumeReconciler) detachedIndeed(ctx context.Context, pv *corev1.PersistentVolume) error {
	if !needsAttach(pv) {
		return nil
	}
	all, err := r.shared.attachments.Get(ctx, struct{}{})
	if err != nil {
		return err
	}
	for _, attachment := range slices.Concat(all.volume[pv.Name], all.handle[handleOf(pv)[0]]) {
		return stillAttached(pv, attachment)
	}
	users, err := r.shared.users.Get(ctx, struct{}{})
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

// volumeOfAttachment wakes the volume that an attachment was of.
func volumeOfAttachment(_ context.Context, object client.Object) []reconcile.Request {
	var requests []reconcile.Request
	for _, name := range attachmentVolume(object) {
		requests = append(requests, requestForName(name))
	}
	return requests
}
