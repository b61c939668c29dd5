package controllers

import (
	"context"
	"fmt"
	"slices"

	storagev1 "k8s.io/api/storage/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/stowage-dev/stowage/internal/attach"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/volume"
)

// attachmentsOf are all attachments, by what attachmentStorage finds them by, which is the
// name of a volume object; by their node; and those that say so by the storage that they
// are of: several volume objects may stand for the same.
type attachmentsOf struct {
	volume map[string][]*storagev1.VolumeAttachment
	node   map[string][]*storagev1.VolumeAttachment
	handle map[string][]*storagev1.VolumeAttachment
	// google are those of Google's driver, which may have an existing disk by another name.
	google []*storagev1.VolumeAttachment
}

func groupAttachments(all []storagev1.VolumeAttachment) attachmentsOf {
	grouped := attachmentsOf{
		volume: make(map[string][]*storagev1.VolumeAttachment, len(all)),
		node:   map[string][]*storagev1.VolumeAttachment{},
		handle: make(map[string][]*storagev1.VolumeAttachment, len(all)),
	}
	for i := range all {
		attachment := &all[i]
		grouped.node[attachment.Spec.NodeName] = append(grouped.node[attachment.Spec.NodeName], attachment)
		for _, storage := range attachmentStorage(attachment) {
			grouped.volume[storage] = append(grouped.volume[storage], attachment)
		}
		if attachment.Spec.Attacher == googleDriver {
			grouped.google = append(grouped.google, attachment)
		}
		if intent, err := intentOfAttachment(attachment); err == nil && intent != nil {
			handle := intent.handle(attachment.Spec.Attacher)
			grouped.handle[handle] = append(grouped.handle[handle], attachment)
		}
	}
	return grouped
}

// awaitTurn looks, live, that the attachment is still wanted and prepared, and that of
// a volume which one node at a time can have no older attachment is left. Which is the
// older everybody sees alike, so of two leaders, and of two nodes, one attaches.
func (r *VolumeAttachmentReconciler) awaitTurn(ctx context.Context, a *attaching) error {
	all, err := r.shared.attachments.Get(ctx, struct{}{})
	if err != nil {
		return err
	}
	names := r.standingFor(ctx, a.pv.Name)
	if !slices.ContainsFunc(all.volume[a.pv.Name], a.isStillWanted) {
		a.over = true
		return nil
	}
	if err := a.comesAfterGoogle(all); err != nil || volume.AllowsMultiAttach(a.volume.Spec.AccessModes) {
		return err
	}
	for _, name := range names {
		for _, other := range all.volume[name] {
			if err := a.comesAfter(other); err != nil {
				return err
			}
		}
	}
	for _, other := range all.handle[handleOf(a.volume)[0]] {
		if err := a.comesAfter(other); err != nil {
			return err
		}
	}
	return nil
}

// isStillWanted tells whether what was read is the attachment, and to be attached.
func (a *attaching) isStillWanted(current *storagev1.VolumeAttachment) bool {
	return current.UID == a.attachment.UID && current.DeletionTimestamp.IsZero() &&
		controllerutil.ContainsFinalizer(current, attacherFinalizer(current.Spec.Attacher))
}

// comesAfter returns an error where another attachment of the storage was there first:
// it is older, or has it already, which is more than to be older in the same second.
func (a *attaching) comesAfter(other *storagev1.VolumeAttachment) error {
	if other.UID == a.attachment.UID || other.Spec.Attacher != a.attachment.Spec.Attacher ||
		!other.Status.Attached && attach.Older(other, a.attachment) > 0 {
		return nil
	}
	state := "is attached to"
	if !other.DeletionTimestamp.IsZero() {
		state = "is being detached from"
	}
	return backend.Conflict.Errorf("volume %s %s node %s, and one node at a time can have it (VolumeAttachment %s)",
		a.pv.Name, state, other.Spec.NodeName, other.Name)
}

// listAttachments lists all attachments of the cluster, live.
func listAttachments(ctx context.Context, live client.Reader) (attachmentsOf, error) {
	attachments := &storagev1.VolumeAttachmentList{}
	if err := live.List(ctx, attachments); err != nil {
		return attachmentsOf{}, fmt.Errorf("listing the attachments: %w", err)
	}
	return groupAttachments(attachments.Items), nil
}
