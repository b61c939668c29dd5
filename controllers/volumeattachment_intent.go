package controllers

import (
	"encoding/json"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/volume"
)

// attachIntent is what an attachment says before anything is attached: all that a
// detach needs when the volume object and the Node object are gone.
type attachIntent struct {
	// Backend is the name of the StorageBackend, Volume the id in it.
	Backend string `json:"backend"`
	Volume  string `json:"volume"`
	// Instance is the provider's id of the node's machine. Another one may have the
	// node's name by the time of the detach.
	Instance string `json:"instance,omitempty"`
}

// attacherFinalizer is the one that Kubernetes' external-attacher uses for a driver, on
// attachments and on volumes.
func attacherFinalizer(driver string) string {
	return "external-attacher/" + strings.ReplaceAll(driver, ".", "-")
}

// prepareAttachment sets on an attachment of one of our drivers what has to be there
// before anything is attached, and tells whether it wasn't. Whoever makes an attachment
// saves a write by preparing it.
func prepareAttachment(attachment *storagev1.VolumeAttachment, pv *corev1.PersistentVolume, node *corev1.Node) bool {
	if !backend.NeedsAttach(attachment.Spec.Attacher) || pv.Spec.CSI == nil {
		return false
	}
	changed := controllerutil.AddFinalizer(attachment, attacherFinalizer(attachment.Spec.Attacher))
	if attachment.Annotations[stowagev1alpha1.AttachmentAnnotation] != "" {
		return nameInstance(attachment, node) || changed
	}
	said, err := json.Marshal(attachIntent{
		Backend:  pv.Spec.CSI.VolumeAttributes[stowagev1alpha1.BackendAttribute],
		Volume:   pv.Spec.CSI.VolumeHandle,
		Instance: node.Spec.ProviderID,
	})
	if err != nil {
		return changed
	}
	metav1.SetMetaDataAnnotation(&attachment.ObjectMeta, stowagev1alpha1.AttachmentAnnotation, string(said))
	return true
}

// nameInstance adds the machine to what was written while its node had no provider's id:
// without it, nothing would say later where the volume is.
func nameInstance(attachment *storagev1.VolumeAttachment, node *corev1.Node) bool {
	intent, err := intentOfAttachment(attachment)
	if err != nil || intent == nil || intent.Instance != "" || node.Spec.ProviderID == "" {
		return false
	}
	intent.Instance = node.Spec.ProviderID
	said, err := json.Marshal(intent)
	if err != nil {
		return false
	}
	attachment.Annotations[stowagev1alpha1.AttachmentAnnotation] = string(said)
	return true
}

// intentOfAttachment reads what an attachment says; nil where it says nothing.
func intentOfAttachment(attachment *storagev1.VolumeAttachment) (*attachIntent, error) {
	said := attachment.Annotations[stowagev1alpha1.AttachmentAnnotation]
	if said == "" {
		return nil, nil
	}
	intent := &attachIntent{}
	if err := json.Unmarshal([]byte(said), intent); err != nil {
		return nil, backend.Invalid.Errorf("reading annotation %s of attachment %s: %w", stowagev1alpha1.AttachmentAnnotation, attachment.Name, err)
	}
	return intent, nil
}

// handle is the driver and handle of what an attachment attaches, as handleOf gives
// them of a volume.
func (i *attachIntent) handle(driver string) string { return volume.Key(driver, i.Volume) }

// instanceOf is the provider's id of the machine that an attachment is on; empty where
// nobody knows it.
func instanceOf(attachment *storagev1.VolumeAttachment, intent *attachIntent) string {
	if instance := attachment.Status.AttachmentMetadata[backend.InstanceMetadata]; instance != "" || intent == nil {
		return instance
	}
	return intent.Instance
}
