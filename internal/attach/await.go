package attach

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
)

// MayOnlyAwait tells of a node that lists a volume as in use, and isn't told of it any
// more, that it may be a pod which came back and waits, because a kubelet lists that, too.
// The pod waits for this very detach: both would wait for ever. The volume's pods have to
// say so, see OnlyAwaited.
//
// It is not so where the volume may have been withdrawn by force while it was mounted:
// from a node that wasn't Ready, and has become so since, or by the taint, which
// kube-controller-manager believes of Ready nodes, too.
func MayOnlyAwait(node *corev1.Node, name corev1.UniqueVolumeName, attachment *storagev1.VolumeAttachment) bool {
	condition, deleted := ConditionOf(node), attachment.DeletionTimestamp
	return !Told(node, name) && !attachment.CreationTimestamp.Before(&node.CreationTimestamp) &&
		condition.Ready && !condition.OutOfService &&
		deleted != nil && !condition.Since.IsZero() && condition.Since.Before(deleted.Add(-settles))
}

// OnlyAwaited tells whether the pods of a node that name a volume all wait for it, and
// there is one. Where none waits, what the node lists is mounted: its pod may be gone, and
// who deleted the attachment didn't ask the node.
func OnlyAwaited(pods []*corev1.Pod) bool {
	return slices.ContainsFunc(pods, hasYetToMount) && !slices.ContainsFunc(pods, func(pod *corev1.Pod) bool {
		// One that ended, and that nobody deletes, can be left lying for months.
		return !hasYetToMount(pod) && (pod.DeletionTimestamp != nil || !HasStopped(pod))
	})
}

// hasYetToMount tells of a pod that none of its containers has ever begun: a node mounts
// all volumes of a pod before that.
func hasYetToMount(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && (pod.Status.Phase == corev1.PodPending || pod.Status.Phase == "") &&
		!slices.ContainsFunc(pod.Status.Conditions, func(condition corev1.PodCondition) bool {
			return condition.Type == corev1.PodReadyToStartContainers && condition.Status == corev1.ConditionTrue
		}) &&
		!slices.ContainsFunc(slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses), func(status corev1.ContainerStatus) bool {
			return status.State.Running != nil || status.State.Terminated != nil || status.LastTerminationState.Terminated != nil
		})
}
