package slim

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-dev/stowage/internal/attach"
)

// slimPod keeps the identity of a pod, its node, and what decides whether its volumes may be in use: a reconciler
// reads nothing else of a pod.
func slimPod(pod *corev1.Pod) {
	pod.Labels, pod.Annotations, pod.OwnerReferences = nil, nil, nil
	pod.Spec = corev1.PodSpec{NodeName: words.one(pod.Spec.NodeName), Volumes: volumesToAttach(pod.Spec.Volumes)}
	pod.Status = corev1.PodStatus{
		Phase:                      word(pod.Status.Phase),
		Conditions:                 conditionsOf.one(startConditions(pod.Status.Conditions)),
		InitContainerStatuses:      containers.one(slimContainers(pod.Status.InitContainerStatuses)),
		ContainerStatuses:          containers.one(slimContainers(pod.Status.ContainerStatuses)),
		EphemeralContainerStatuses: containers.one(slimContainers(pod.Status.EphemeralContainerStatuses)),
	}
}

// volumesToAttach are those with a claim, and inline ones that may be attached to a node.
func volumesToAttach(volumes []corev1.Volume) []corev1.Volume {
	return slices.Concat(slices.DeleteFunc(volumes, func(volume corev1.Volume) bool {
		return volume.PersistentVolumeClaim == nil && volume.Ephemeral == nil && !attach.IsInline(&volume)
	}))
}

// startConditions is the one condition that shows that the volumes of a pod were mounted.
func startConditions(conditions []corev1.PodCondition) []corev1.PodCondition {
	for i := range conditions {
		if conditions[i].Type == corev1.PodReadyToStartContainers {
			return []corev1.PodCondition{{Type: corev1.PodReadyToStartContainers, Status: conditions[i].Status}}
		}
	}
	return nil
}

func contentOfConditions(conditions []corev1.PodCondition) string {
	if len(conditions) == 0 {
		return ""
	}
	return string(conditions[0].Status)
}

// States of containers: which of them a container is in, or was, and not since when.
var (
	waiting    = &corev1.ContainerStateWaiting{}
	running    = &corev1.ContainerStateRunning{}
	terminated = &corev1.ContainerStateTerminated{}
)

// slimContainers has the states of containers alone.
func slimContainers(statuses []corev1.ContainerStatus) []corev1.ContainerStatus {
	slimmed := make([]corev1.ContainerStatus, len(statuses))
	for i := range statuses {
		slimmed[i].State = slimState(statuses[i].State)
		slimmed[i].LastTerminationState = slimState(statuses[i].LastTerminationState)
	}
	return slimmed
}

func slimState(state corev1.ContainerState) (slimmed corev1.ContainerState) {
	if state.Waiting != nil {
		slimmed.Waiting = waiting
	}
	if state.Running != nil {
		slimmed.Running = running
	}
	if state.Terminated != nil {
		slimmed.Terminated = terminated
	}
	return slimmed
}

func contentOfContainers(statuses []corev1.ContainerStatus) string {
	if len(statuses) > maxEntries {
		return ""
	}
	content := make([]byte, 0, 2*len(statuses))
	for i := range statuses {
		content = append(content, contentOfState(statuses[i].State), contentOfState(statuses[i].LastTerminationState))
	}
	return string(content)
}

// contentOfState has a bit for each state. The API server accepts several at once.
func contentOfState(state corev1.ContainerState) byte {
	content := byte('0')
	if state.Waiting != nil {
		content |= 1
	}
	if state.Running != nil {
		content |= 2
	}
	if state.Terminated != nil {
		content |= 4
	}
	return content
}
