package controllers

import (
	"context"
	"fmt"

	storagev1 "k8s.io/api/storage/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
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

// listAttachments lists all attachments of the cluster, live.
func listAttachments(ctx context.Context, live client.Reader) (attachmentsOf, error) {
	attachments := &storagev1.VolumeAttachmentList{}
	if err := live.List(ctx, attachments); err != nil {
		return attachmentsOf{}, fmt.Errorf("listing the attachments: %w", err)
	}
	return groupAttachments(attachments.Items), nil
}
