package comparison

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/controllers/volumeattachment"
	"github.com/stowage-dev/stowage/internal/attachintent"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/index"
	"github.com/stowage-dev/stowage/internal/volume"
)

// recordedAttachment is an attachment with status.attached.
type recordedAttachment struct {
	*storagev1.VolumeAttachment
	pv     *corev1.PersistentVolume
	intent *attachintent.Intent
}

// recorded returns the attachments of a backend's volumes with status.attached that are not
// being deleted.
func (r *Comparer) recorded(ctx context.Context, object *stowagev1alpha1.StorageBackend) ([]recordedAttachment, error) {
	attachments := &storagev1.VolumeAttachmentList{}
	if err := r.client.List(ctx, attachments); err != nil {
		return nil, fmt.Errorf("listing the attachments: %w", err)
	}
	var found []recordedAttachment
	for i := range attachments.Items {
		attachment := &attachments.Items[i]
		if attachment.Spec.Attacher != backend.DriverOf(object) || !attachment.Status.Attached || !attachment.DeletionTimestamp.IsZero() {
			continue
		}
		pv := r.volumeOf(ctx, attachment)
		intent, err := volumeattachment.VerifiedIntent(attachment, pv)
		// A backend never lists existing disks: their absence from the list shows nothing. To a driver that
		// isn't one of Stowage's own, such a path may be the id of a volume.
		if err == nil && intent.Backend == object.Name && (object.Spec.CSI != nil || !volume.IsDiskPath(intent.Volume)) {
			found = append(found, recordedAttachment{attachment, pv, intent})
		}
	}
	return found, nil
}

// volumeOf returns the PersistentVolume of an attachment from the cache, or nil.
func (r *Comparer) volumeOf(ctx context.Context, attachment *storagev1.VolumeAttachment) *corev1.PersistentVolume {
	for _, name := range index.AttachmentVolume(attachment) {
		pv := &corev1.PersistentVolume{}
		if r.client.Get(ctx, client.ObjectKey{Name: name}, pv, client.UnsafeDisableDeepCopy) == nil {
			return pv
		}
	}
	return nil
}

// isListed reports whether a backend lists a recorded attachment. If its machine is unknown, any
// machine counts.
func isListed(listed []backend.Attached, recorded recordedAttachment) bool {
	instance := attachintent.InstanceOf(recorded.VolumeAttachment, recorded.intent)
	return slices.ContainsFunc(listed, func(attached backend.Attached) bool {
		return attached.ID == recorded.intent.Volume && (instance == "" || attached.ProviderID == instance)
	})
}
