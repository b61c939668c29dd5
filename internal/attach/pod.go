package attach

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// HasStopped tells of a pod that its containers are done for good: it ended, or it is
// deleted and none of them runs. What it had mounted may still be: that is for its
// node to tell, in volumesInUse.
func HasStopped(pod *corev1.Pod) bool {
	if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return true
	}
	return pod.DeletionTimestamp != nil && !slices.ContainsFunc(slices.Concat(
		pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses, pod.Status.EphemeralContainerStatuses,
	), mayRun)
}

// mayRun counts a container of which nothing is said as one that runs.
func mayRun(status corev1.ContainerStatus) bool {
	return status.State.Terminated == nil && status.State.Waiting == nil
}

// Wants tells whether a pod's volumes are to be attached to its node. Some nodes want
// the volumes of their pods kept as long as the pods' objects are there.
func Wants(pod *corev1.Pod, node *corev1.Node) bool {
	return pod.Spec.NodeName != "" && (!HasStopped(pod) || keepsTerminated(node))
}
