package podstatus

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
)

// IsEcho reports whether a pod changed only by the condition that this program writes, or by the time of
// a deletion that had begun: no volume depends on it. Such an update needs no pass. A removed condition
// does.
func IsEcho(before, now *corev1.Pod) bool {
	if !slices.ContainsFunc(now.Status.Conditions, isOwn) || before.UID != now.UID {
		return false
	}
	return equality.Semantic.DeepEqual(withoutEchoes(before), withoutEchoes(now))
}

func isOwn(condition corev1.PodCondition) bool {
	return condition.Type == stowagev1alpha1.VolumesReadyCondition
}

// withoutEchoes returns the pod without that condition, without the time of a deletion that has begun,
// and without versions and managers, which any write changes.
func withoutEchoes(pod *corev1.Pod) *corev1.Pod {
	bare := *pod
	bare.ResourceVersion, bare.Generation, bare.ManagedFields = "", 0, nil
	if pod.DeletionTimestamp != nil {
		bare.DeletionTimestamp, bare.DeletionGracePeriodSeconds = &metav1.Time{}, nil
	}
	bare.Status.Conditions = slices.DeleteFunc(slices.Clone(pod.Status.Conditions), isOwn)
	return &bare
}
