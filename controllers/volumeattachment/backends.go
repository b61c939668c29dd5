package volumeattachment

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/attachintent"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/index"
	"github.com/stowage-dev/stowage/internal/liveread"
	"github.com/stowage-dev/stowage/internal/opener"
	"github.com/stowage-dev/stowage/internal/volume"
	"github.com/stowage-dev/stowage/internal/wake"
)

// backends opens the backends of attachments. A finished call wakes its attachment.
type backends struct {
	client  client.Reader
	storage *opener.Opener
	waking  *wake.Source
}

// opened is an open backend, its object, and its ability to attach volumes.
type opened struct {
	storage  backend.Backend
	object   *stowagev1alpha1.StorageBackend
	attacher backend.Attacher
}

func (b backends) get(ctx context.Context, attachment *storagev1.VolumeAttachment, name string) (opened, error) {
	object := &stowagev1alpha1.StorageBackend{}
	if err := b.client.Get(ctx, client.ObjectKey{Name: name}, object); err != nil {
		if apierrors.IsNotFound(err) {
			return opened{}, backend.Invalid.Errorf("StorageBackend %s is gone: create it again", name)
		}
		return opened{}, fmt.Errorf("reading StorageBackend %s: %w", name, err)
	}
	key := client.ObjectKeyFromObject(attachment)
	storage, err := b.storage.Open(object, func() { b.waking.Add(key) })
	if err != nil {
		return opened{}, err
	}
	attacher, can := backend.As[backend.Attacher](storage)
	if !can || backend.DriverOf(object) != attachment.Spec.Attacher {
		return opened{}, backend.Invalid.Errorf("StorageBackend %s does not attach volumes of driver %s", name, attachment.Spec.Attacher)
	}
	return opened{storage, object, attacher}, nil
}

// liveNode reads a node, live. It returns nil if there is none.
func liveNode(ctx context.Context, shared liveread.Reads, name string) (*corev1.Node, error) {
	node, err := shared.Nodes.Get(ctx, name)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading node %s: %w", name, err)
	}
	return node, nil
}

// isAnotherMachine reports whether a node is certainly not the given machine.
func isAnotherMachine(node *corev1.Node, instance string) bool {
	return instance != "" && node.Spec.ProviderID != "" && node.Spec.ProviderID != instance
}

// VerifiedIntent returns the verified record of what an attachment attached. Users can write
// annotations. If the attachment's name, a hash of the volume's id, does not agree, or there
// is no annotation, the PersistentVolume counts. An in-tree disk has no owner record: there
// the name has to agree.
func VerifiedIntent(attachment *storagev1.VolumeAttachment, pv *corev1.PersistentVolume) (*attachintent.Intent, error) {
	intent, err := attachintent.Of(attachment)
	if err == nil && intent != nil &&
		(pv == nil && !volume.IsDiskPath(intent.Volume) || attachment.Name == volume.AttachmentName(attachment.Spec.Attacher, intent.Volume, attachment.Spec.NodeName)) {
		return intent, nil
	}
	if pv == nil || pv.Spec.CSI == nil {
		return nil, backend.Invalid.Errorf("the volume object is gone, or is none of this driver, and nothing records which disk is attached: detach it by hand, "+
			"and take the finalizer %s off this VolumeAttachment", attachintent.Finalizer(attachment.Spec.Attacher))
	}
	ofVolume := &attachintent.Intent{Backend: strings.Join(index.BackendOf(pv), ""), Volume: pv.Spec.CSI.VolumeHandle}
	if intent != nil {
		ofVolume.Instance = intent.Instance
	}
	return ofVolume, nil
}
