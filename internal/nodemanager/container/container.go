// Package container reads which of a pod's containers run, and writes a description of each for the
// container runtime. It says which of the pod's volumes the container has where.
//
// It never runs anything, and never reads from the API server or from a volume.
package container

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// All returns the init, regular and ephemeral containers of a pod. No two of them have the same
// name.
func All(pod *corev1.Pod) []corev1.Container {
	all := slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers)
	for _, added := range pod.Spec.EphemeralContainers {
		all = append(all, corev1.Container(added.EphemeralContainerCommon))
	}
	return all
}

// IsRunning reports whether a container of a pod runs, as the pod's status has it.
func IsRunning(pod *corev1.Pod, name string) bool {
	return stateOf(pod, name).Running != nil
}

// IsOver reports whether a container of a pod has ended and isn't started again.
func IsOver(pod *corev1.Pod, container corev1.Container) bool {
	ended := stateOf(pod, container.Name).Terminated
	switch {
	case ended == nil || container.RestartPolicy != nil && *container.RestartPolicy == corev1.ContainerRestartPolicyAlways:
		return false
	case ended.ExitCode != 0:
		return pod.Spec.RestartPolicy == corev1.RestartPolicyNever
	default:
		return isInit(pod, container.Name) || pod.Spec.RestartPolicy != corev1.RestartPolicyAlways
	}
}

func isInit(pod *corev1.Pod, name string) bool {
	return slices.ContainsFunc(pod.Spec.InitContainers, func(container corev1.Container) bool { return container.Name == name })
}

// stateOf is the state of a container, as the pod's status has it; empty if it has none.
func stateOf(pod *corev1.Pod, name string) corev1.ContainerState {
	status := pod.Status
	for _, container := range slices.Concat(status.InitContainerStatuses, status.ContainerStatuses, status.EphemeralContainerStatuses) {
		if container.Name == name {
			return container.State
		}
	}
	return corev1.ContainerState{}
}
