package podstatus

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
)

// IsEcho reports whether a pod changed only by the condition that this program writes: such an
// update needs no pass. A removed condition does.
func IsEcho(before, now *corev1.Pod) bool {
	if !slices.ContainsFunc(now.Status.Conditions, isOwn) || before.UID != now.UID {
		return false
	}
	return equality.Semantic.DeepEqual(withoutOwn(before), withoutOwn(now))
}

func isOwn(condition corev1.PodCondition) bool {
	return condition.Type == stowagev1alpha1.VolumesReadyCondition
}

// withoutOwn returns the pod without that condition, and without what any write changes.
func withoutOwn(pod *corev1.Pod) *corev1.Pod {
	bare := *pod
	bare.ResourceVersion, bare.ManagedFields = "", nil
	bare.Status.Conditions = slices.DeleteFunc(slices.Clone(pod.Status.Conditions), isOwn)
	return &bare
}
