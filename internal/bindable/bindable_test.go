package bindable_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/storage/volume"

	"github.com/stowage-dev/stowage/internal/bindable"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

func TestOldVolumeSaysWhatTheDeletedVolumeIs(t *testing.T) {
	for name, test := range map[string]struct {
		volume *corev1.PersistentVolume
		want   string
	}{
		"made for the claim": {Volume("pvc-1", func(pv *corev1.PersistentVolume) {
			pv.Annotations = map[string]string{volume.AnnDynamicallyProvisioned: "local.stowage.dev"}
		}), "which was made for this claim"},
		"reserved by a person for the claim": {Volume("disk", func(pv *corev1.PersistentVolume) {
			ReservedTo("data")(pv)
			pv.Spec.ClaimRef.UID = "1"
		}), "which is reserved for this claim"},
		"only named as the claim's volume": {Volume("pvc-1"), "has the name of the volume that is made for this claim, and isn't that"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, message := bindable.OldVolume(test.volume, Claim(ClaimUID("1"))); !strings.Contains(message, test.want) {
				t.Errorf("it says %q", message)
			}
		})
	}
}
