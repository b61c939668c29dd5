package attachintent

import (
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/csi-translation-lib/plugins"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/attach"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/volume"
)

// GoogleDriver is the CSI driver that attaches in-tree disks to all other nodes.
const GoogleDriver = plugins.GCEPDDriverName

// AllowsInTreeDisks reports whether a StorageBackend attaches disks that it did not make.
func AllowsInTreeDisks(object client.Object) bool {
	spec := object.(*stowagev1alpha1.StorageBackend).Spec
	return spec.GCE != nil && spec.GCE.ExistingDisks
}

// IsInTreeDiskBy reports whether a backend attached, or is about to attach, a disk that it did
// not make.
func IsInTreeDiskBy(attachment *storagev1.VolumeAttachment, name string) bool {
	intent, err := Of(attachment)
	return attachment.Spec.Attacher == stowagev1alpha1.GCEDriver && err == nil && intent != nil && intent.Backend == name && volume.IsDiskPath(intent.Volume)
}

// IsInTreeDisk reports whether an attachment of ours is of a disk that Stowage did not make.
func IsInTreeDisk(attachment *storagev1.VolumeAttachment, pv *corev1.PersistentVolume) bool {
	return attach.IsInTreeDisk(pv) && attachment.Spec.Attacher == stowagev1alpha1.GCEDriver
}

// AttacherOf returns the backend's ability to attach volumes, or an error.
func AttacherOf(opened backend.Backend, name string) (backend.Attacher, error) {
	attacher, can := backend.As[backend.Attacher](opened)
	if !can {
		return nil, backend.Invalid.Errorf("StorageBackend %s doesn't attach volumes", name)
	}
	return attacher, nil
}
