package attach

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// HasStopped reports whether a pod's containers have stopped for good: it ended, or it is
// deleted and none of them runs. Its volumes may still be mounted: volumesInUse of its node
// shows that.
func HasStopped(pod *corev1.Pod) bool {
	if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return true
	}
	return pod.DeletionTimestamp != nil && !slices.ContainsFunc(slices.Concat(
		pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses, pod.Status.EphemeralContainerStatuses,
	), mayRun)
}

// mayRun counts a container without a state as running.
func mayRun(status corev1.ContainerStatus) bool {
	return status.State.Terminated == nil && status.State.Waiting == nil
}

// NeedsVolumes reports whether a pod's volumes should be attached to its node. Some nodes keep the
// volumes of their pods as long as the pods' objects exist.
func NeedsVolumes(pod *corev1.Pod, node *corev1.Node) bool {
	return pod.Spec.NodeName != "" && (!HasStopped(pod) || keepsTerminated(node))
}
