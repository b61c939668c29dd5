package podstatus

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/nodemanager/nodetest"
)

func TestAPodIsReconciledUnlessOnlyItsOwnConditionOrTheTimeOfItsDeletionChanged(t *testing.T) {
	own := corev1.PodCondition{Type: stowagev1alpha1.VolumesReadyCondition, Status: corev1.ConditionTrue}
	tests := map[string]struct {
		change func(before, now *corev1.Pod)
		echo   bool
	}{
		"only the condition is new": {func(_, now *corev1.Pod) { now.Status.Conditions = append(now.Status.Conditions, own) }, true},
		"only the condition says something else": {func(before, now *corev1.Pod) {
			before.Status.Conditions = append(before.Status.Conditions, own)
			now.Status.Conditions = append(now.Status.Conditions, corev1.PodCondition{Type: own.Type, Status: corev1.ConditionFalse})
		}, true},
		"the condition was lost": {func(before, _ *corev1.Pod) { before.Status.Conditions = append(before.Status.Conditions, own) }, false},
		"another condition is new, too": {func(_, now *corev1.Pod) {
			now.Status.Conditions = []corev1.PodCondition{own, {Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		}, false},
		"it is being deleted": {func(_, now *corev1.Pod) {
			now.Status.Conditions = append(now.Status.Conditions, own)
			now.DeletionTimestamp = new(metav1.Now())
		}, false},
		"its deletion comes to its end": {func(before, now *corev1.Pod) {
			for grace, pod := range []*corev1.Pod{now, before} {
				pod.Status.Conditions = append(pod.Status.Conditions, own)
				pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = new(metav1.Now()), new(int64(grace))
				pod.Generation = int64(3 - grace)
			}
		}, true},
		"a container runs": {func(_, now *corev1.Pod) { nodetest.Deleting(now, true).Status.Conditions = []corev1.PodCondition{own} }, false},
		"a label changed": {func(_, now *corev1.Pod) {
			now.Status.Conditions = append(now.Status.Conditions, own)
			now.Labels = map[string]string{"app": "other"}
		}, false},
		"it is another pod of that name": {func(_, now *corev1.Pod) {
			now.Status.Conditions = append(now.Status.Conditions, own)
			now.UID = "other"
		}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			before, now := nodetest.PodOnNode(nodetest.SomePod), nodetest.PodOnNode(nodetest.SomePod)
			before.ResourceVersion, now.ResourceVersion = "1", "2"
			test.change(before, now)
			if echo := IsEcho(before, now); echo != test.echo {
				t.Errorf("isEcho is %t", echo)
			}
		})
	}
}
