package attachintent

import (
	"context"

	storagev1 "k8s.io/api/storage/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/internal/wrap"
)

// ByHandle is the field index of the manager's cache that finds attachments by the storage that
// their annotations name, in the format of index.HandleOf.
const ByHandle = "stowage.handle"

// AddIndex registers the index ByHandle.
func AddIndex(ctx context.Context, indexer client.FieldIndexer) error {
	err := indexer.IndexField(ctx, &storagev1.VolumeAttachment{}, ByHandle, func(object client.Object) []string {
		return HandlesOf(object.(*storagev1.VolumeAttachment))
	})
	return wrap.Error(err, "indexing VolumeAttachments by handle")
}

// HandlesOf returns the storage that an attachment's annotation names, if any.
func HandlesOf(attachment *storagev1.VolumeAttachment) []string {
	intent, err := Of(attachment)
	if err != nil || intent == nil {
		return nil
	}
	return []string{intent.Handle(attachment.Spec.Attacher)}
}
