package volumeattachment

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/event"
)

// Reasons of events, as Kubernetes' own controllers use them.
const (
	reasonFailedDetach = "FailedDetachVolume"
	reasonForcedDetach = "ForcedDetachVolume"
	reasonSlow         = "SlowAttachVolume"
	ReasonDetached     = "VolumeDetachedElsewhere"
)

// warnings records events about attachments, each once.
type warnings struct {
	events events.EventRecorder
	last   event.Last
	// forced are the attachments with an event about a detach by force.
	forced event.Last
}

// record records an event on an attachment, on its PersistentVolume if there is one, and on
// more objects, unless it equals the last one.
func (w *warnings) record(attachment *storagev1.VolumeAttachment, pv *corev1.PersistentVolume, reason, message string, more ...runtime.Object) {
	if !w.last.IsNews(client.ObjectKeyFromObject(attachment), message) {
		return
	}
	objects := append(more, attachment)
	if pv != nil {
		objects = append(objects, pv)
	}
	for _, object := range objects {
		w.events.Eventf(object, nil, corev1.EventTypeWarning, reason, "Attach", "%s", message)
	}
}

// recordForced records an event that a detach is by force, and reports whether it did: once,
// however often the call is repeated.
func (w *warnings) recordForced(attachment *storagev1.VolumeAttachment, pv *corev1.PersistentVolume, why string) bool {
	if !w.forced.IsNews(client.ObjectKeyFromObject(attachment), string(attachment.UID)) {
		return false
	}
	w.record(attachment, pv, reasonForcedDetach,
		fmt.Sprintf("detaching it from node %s, which has not released it: %s", attachment.Spec.NodeName, why))
	return true
}

// claimToWarn returns the claim of a volume if a person has to act on an error: most users see
// only the claim's namespace.
func claimToWarn(pv *corev1.PersistentVolume, err error) []runtime.Object {
	if backend.KindOf(err) != backend.Invalid || pv == nil || pv.Spec.ClaimRef == nil {
		return nil
	}
	ref := pv.Spec.ClaimRef.DeepCopy()
	ref.APIVersion, ref.Kind = corev1.SchemeGroupVersion.String(), "PersistentVolumeClaim"
	return []runtime.Object{ref}
}
