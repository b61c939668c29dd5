package liveread

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/stowage-dev/stowage/internal/attachintent"
	"github.com/stowage-dev/stowage/internal/backend"
)

// Volumes reads the volumes of attachments, before these are attached.
type Volumes struct {
	Cache, Live client.Reader
	// Prepared are the writes by which this process prepared attachments.
	Prepared *attachintent.Writes
}

// Get reads the volume of an attachment live.
//
// The cache is enough right after this process prepared the attachment, if it shows the very volume that it was prepared for, kept
// by the attacher's finalizer. A live read could then show one thing more: the volume is being deleted, or was, since the cache was
// updated. What comes of that doesn't depend on the read, which the deletion may follow at once:
//
//   - Storage is removed only after a live list of attachments and nodes, with no other call for that volume under way. The
//     attachment is in that list, or the storage is gone, and the backend says so.
//   - The attachment itself records all that the detach needs. The volume's other attachments are found by its storage, too.
//   - A new object of the name, with other storage, is attached by an attachment of another name.
//
// Stowage's own backends refuse a second writer. Of other drivers nothing is known: their volumes are always read live.
func (v Volumes) Get(ctx context.Context, attachment *storagev1.VolumeAttachment, name string) (*corev1.PersistentVolume, error) {
	pv, key := &corev1.PersistentVolume{}, client.ObjectKey{Name: name}
	if v.Prepared.Has(attachment) && v.Cache.Get(ctx, key, pv) == nil && isPreparedFor(attachment, pv) {
		return pv, nil
	}
	pv = &corev1.PersistentVolume{}
	return pv, v.Live.Get(ctx, key, pv)
}

// isPreparedFor reports whether an attachment of one of Stowage's drivers records the storage of a volume that stays.
func isPreparedFor(attachment *storagev1.VolumeAttachment, pv *corev1.PersistentVolume) bool {
	driver := attachment.Spec.Attacher
	intent, err := attachintent.Of(attachment)
	if err != nil || intent == nil || !backend.IsOurs(driver) || pv.Spec.CSI == nil {
		return false
	}
	return pv.Spec.CSI.Driver == driver && pv.Spec.CSI.VolumeHandle == intent.Volume && pv.DeletionTimestamp.IsZero() &&
		controllerutil.ContainsFinalizer(pv, attachintent.Finalizer(driver))
}
