package liveread

import (
	"context"
	"fmt"

	storagev1 "k8s.io/api/storage/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/internal/attachintent"
	"github.com/stowage-dev/stowage/internal/index"
)

// Attachments groups all VolumeAttachments by their index value in AttachmentStorage (usually
// the PersistentVolume), by node, and by storage handle if their annotation names it. Several
// PersistentVolumes may refer to the same storage.
type Attachments struct {
	Volume map[string][]*storagev1.VolumeAttachment
	Node   map[string][]*storagev1.VolumeAttachment
	Handle map[string][]*storagev1.VolumeAttachment
	// Google are those of Google's driver, which may have an existing disk by another name.
	Google []*storagev1.VolumeAttachment
}

// GroupAttachments groups attachments.
func GroupAttachments(all []storagev1.VolumeAttachment) Attachments {
	grouped := Attachments{
		Volume: make(map[string][]*storagev1.VolumeAttachment, len(all)),
		Node:   map[string][]*storagev1.VolumeAttachment{},
		Handle: make(map[string][]*storagev1.VolumeAttachment, len(all)),
	}
	for i := range all {
		attachment := &all[i]
		grouped.Node[attachment.Spec.NodeName] = append(grouped.Node[attachment.Spec.NodeName], attachment)
		for _, storage := range index.AttachmentStorage(attachment) {
			grouped.Volume[storage] = append(grouped.Volume[storage], attachment)
		}
		if attachment.Spec.Attacher == attachintent.GoogleDriver {
			grouped.Google = append(grouped.Google, attachment)
		}
		for _, handle := range attachintent.HandlesOf(attachment) {
			grouped.Handle[handle] = append(grouped.Handle[handle], attachment)
		}
	}
	return grouped
}

func listAttachments(ctx context.Context, live client.Reader) (Attachments, error) {
	attachments := &storagev1.VolumeAttachmentList{}
	if err := live.List(ctx, attachments); err != nil {
		return Attachments{}, fmt.Errorf("listing the attachments: %w", err)
	}
	return GroupAttachments(attachments.Items), nil
}
