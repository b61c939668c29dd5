// Package attachintent has what a VolumeAttachment of Stowage's drivers carries from before
// the attach: the backend, the volume and the machine, and the finalizer. A detach needs no
// other object. The reconcilers of nodes and attachments use it.
package attachintent

import (
	"encoding/json"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/index"
	"github.com/stowage-dev/stowage/internal/volume"
)

// Intent is the content of an attachment's annotation, written before the attach. It is all
// that a detach needs after the PersistentVolume and the Node object are gone.
type Intent struct {
	// Backend is the name of the StorageBackend, Volume the id in it.
	Backend string `json:"backend"`
	Volume  string `json:"volume"`
	// Instance is the provider's id of the node's machine. At the time of the detach another
	// machine may have the node's name.
	Instance string `json:"instance,omitempty"`
}

// Finalizer returns the finalizer that Kubernetes' external-attacher uses for a driver, on
// attachments and on volumes.
func Finalizer(driver string) string {
	return "external-attacher/" + strings.ReplaceAll(driver, ".", "-")
}

// DriverIDAnnotation of a VolumeAttachment is the id that the CSI driver gave the node, where the
// driver isn't one of Stowage's. Kubernetes' external-attacher keeps it there, too.
const DriverIDAnnotation = "csi.alpha.kubernetes.io/node-id"

// Prepare sets what an attachment needs before the attach, and reports whether it changed
// anything. Its driver is one that Stowage serves, with volumes that are attached. Calling it
// before the create saves a write.
func Prepare(attachment *storagev1.VolumeAttachment, pv *corev1.PersistentVolume, node *corev1.Node) bool {
	if pv.Spec.CSI == nil {
		return false
	}
	changed := controllerutil.AddFinalizer(attachment, Finalizer(attachment.Spec.Attacher))
	if attachment.Annotations[stowagev1alpha1.AttachmentAnnotation] != "" {
		return nameInstance(attachment, node) || changed
	}
	annotation, err := json.Marshal(Intent{
		Backend:  strings.Join(index.BackendOf(pv), ""),
		Volume:   pv.Spec.CSI.VolumeHandle,
		Instance: node.Spec.ProviderID,
	})
	if err != nil {
		return changed
	}
	metav1.SetMetaDataAnnotation(&attachment.ObjectMeta, stowagev1alpha1.AttachmentAnnotation, string(annotation))
	return true
}

// nameInstance adds the machine if the node had no provider's id at the first write. Without
// it, nothing would show later where the volume is.
func nameInstance(attachment *storagev1.VolumeAttachment, node *corev1.Node) bool {
	intent, err := Of(attachment)
	if err != nil || intent == nil || intent.Instance != "" || node.Spec.ProviderID == "" {
		return false
	}
	intent.Instance = node.Spec.ProviderID
	annotation, err := json.Marshal(intent)
	if err != nil {
		return false
	}
	attachment.Annotations[stowagev1alpha1.AttachmentAnnotation] = string(annotation)
	return true
}

// Of reads the annotation of an attachment. It returns nil if there is none.
func Of(attachment *storagev1.VolumeAttachment) (*Intent, error) {
	annotation := attachment.Annotations[stowagev1alpha1.AttachmentAnnotation]
	if annotation == "" {
		return nil, nil
	}
	intent := &Intent{}
	if err := json.Unmarshal([]byte(annotation), intent); err != nil {
		return nil, backend.Invalid.Errorf("reading annotation %s of attachment %s: %w", stowagev1alpha1.AttachmentAnnotation, attachment.Name, err)
	}
	return intent, nil
}

// Handle returns the driver and handle of the attached volume, in the format of HandleOf.
func (i *Intent) Handle(driver string) string { return volume.Key(driver, i.Volume) }

// InstanceOf returns the provider's id of an attachment's machine, or "" if unknown. The metadata
// of a driver that isn't one of Stowage's are its own, and name no machine.
func InstanceOf(attachment *storagev1.VolumeAttachment, intent *Intent) string {
	instance := ""
	if backend.IsOurs(attachment.Spec.Attacher) {
		instance = attachment.Status.AttachmentMetadata[backend.InstanceMetadata]
	}
	if instance != "" || intent == nil {
		return instance
	}
	return intent.Instance
}

// MachineOf returns the identity of an attachment's machine, as far as the attachment has it.
func MachineOf(attachment *storagev1.VolumeAttachment, intent *Intent) backend.NodeIdentity {
	return backend.NodeIdentity{
		Name: attachment.Spec.NodeName, ProviderID: InstanceOf(attachment, intent), DriverID: attachment.Annotations[DriverIDAnnotation],
	}
}
