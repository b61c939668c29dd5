package bindable_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stowage-dev/stowage/internal/bindable"
)

func TestEachWriteOfAConditionHasTheTimeOfItsProbe(t *testing.T) {
	claim := &corev1.PersistentVolumeClaim{}
	for _, message := range []string{"1 too small", "2 too small"} {
		if !bindable.Set(claim, corev1.PersistentVolumeClaimCondition{Status: corev1.ConditionFalse, Reason: "NoMatchingVolume", Message: message}) {
			t.Errorf("%s is no change", message)
		}
		condition := &claim.Status.Conditions[0]
		if condition.LastProbeTime.IsZero() || condition.LastTransitionTime.IsZero() {
			t.Error("kubectl would show that it was probed in the year 1")
		}
		condition.LastProbeTime = metav1.Time{}
		condition.LastTransitionTime = metav1.NewTime(time.Unix(1, 0))
	}
	if got := claim.Status.Conditions[0].LastTransitionTime; got.Unix() != 1 {
		t.Errorf("its status is the same, and changed at %s", got)
	}
}
