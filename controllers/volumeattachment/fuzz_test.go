package volumeattachment

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/volume"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

func FuzzAnAnnotationNamesNoOtherVolumeToDetach(f *testing.F) {
	for _, annotation := range []string{`{"backend":"cloud","volume":"another"}`, `{"volume":"pvc-1"}`, `{"volume":["x"]}`, `null`, "", "[", `{"instance":"gce://a/b/c"}`} {
		f.Add(annotation, "csi-1")
	}
	f.Fuzz(func(t *testing.T, annotation, name string) {
		pv := Volume("v")
		pv.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{VolumeHandle: "pvc-1"}}
		attachment := &storagev1.VolumeAttachment{Spec: storagev1.VolumeAttachmentSpec{Attacher: stowagev1alpha1.GCEDriver, NodeName: "n"}}
		attachment.Name = name
		attachment.Annotations = map[string]string{stowagev1alpha1.AttachmentAnnotation: annotation}

		intent, err := VerifiedIntent(attachment, pv)
		if err != nil {
			return
		}
		if intent.Volume != "pvc-1" && name != volume.AttachmentName(stowagev1alpha1.GCEDriver, intent.Volume, "n") {
			t.Errorf("%q has %q detached", annotation, intent.Volume)
		}
	})
}
