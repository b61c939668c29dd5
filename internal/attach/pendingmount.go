package attach

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
)

// MayBePendingMount reports whether a volume in volumesInUse, but not in volumesAttached, may be a
// pending mount: a kubelet also lists what its pods wait for. Such a pod came back and waits
// for this very detach: both would wait for ever. ArePendingMounts has to confirm it.
//
// It is false if the volume may have been removed from volumesAttached by force while it was
// mounted. That happens to a node that was not Ready and became Ready since. It also happens
// by the taint, which kube-controller-manager honors on Ready nodes, too.
func MayBePendingMount(node *corev1.Node, name corev1.UniqueVolumeName, attachment *storagev1.VolumeAttachment) bool {
	condition, deleted := ConditionOf(node), attachment.DeletionTimestamp
	return !IsMarkedAttached(node, name) && !attachment.CreationTimestamp.Before(&node.CreationTimestamp) &&
		condition.Ready && !condition.OutOfService &&
		deleted != nil && !condition.Since.IsZero() && condition.Since.Before(deleted.Add(-settleTime))
}

// ArePendingMounts reports whether all of a node's pods with a volume wait for it, and there is at
// least one. Without one, a volume that the node lists is mounted. Its pod may be gone, and
// nothing may have checked the node before the attachment was deleted.
func ArePendingMounts(pods []*corev1.Pod) bool {
	return slices.ContainsFunc(pods, isPendingMount) && !slices.ContainsFunc(pods, func(pod *corev1.Pod) bool {
		// A pod that ended, and is not deleted, may exist for months.
		return !isPendingMount(pod) && (pod.DeletionTimestamp != nil || !HasStopped(pod))
	})
}

// isPendingMount reports whether none of a pod's containers has ever started: a node mounts all
// volumes of a pod before that.
func isPendingMount(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && (pod.Status.Phase == corev1.PodPending || pod.Status.Phase == "") &&
		!slices.ContainsFunc(pod.Status.Conditions, func(condition corev1.PodCondition) bool {
			return condition.Type == corev1.PodReadyToStartContainers && condition.Status == corev1.ConditionTrue
		}) &&
		!slices.ContainsFunc(slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses), func(status corev1.ContainerStatus) bool {
			return status.State.Running != nil || status.State.Terminated != nil || status.LastTerminationState.Terminated != nil
		})
}
