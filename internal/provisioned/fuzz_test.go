package provisioned_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/bindable"
	"github.com/stowage-dev/stowage/internal/provisioned"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

func FuzzAnAnnotationBeginsNoOtherAttempt(f *testing.F) {
	f.Add(`{"backend":"disks","attempt":7}`, "attempt 2: what was begun for the claim before is undone")
	f.Add(`{"attempt":"x"}`, "attempt -1: what was begun for the claim before is undone")
	f.Add(`[`, "attempt 99999999999999999999999: ")
	f.Fuzz(func(t *testing.T, said, counted string) {
		claim := Claim(ClaimUID("1"))
		claim.Annotations = map[string]string{stowagev1alpha1.ProvisioningAnnotation: said}
		if attempt := provisioned.AttemptOf(claim); attempt != 1 {
			t.Errorf("attempt %d is begun by an annotation", attempt)
		}
		_, _ = provisioned.IntentOf(claim)
		bindable.SetCondition(claim, corev1.PersistentVolumeClaimCondition{Type: stowagev1alpha1.AttemptCondition, Message: counted})
		if attempt := provisioned.AttemptOf(claim); attempt < 1 {
			t.Errorf("%q is attempt %d", counted, attempt)
		}
	})
}
