package container_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-dev/stowage/internal/nodemanager/container"
)

func TestAContainerIsOverOnceItIsNotStartedAgain(t *testing.T) {
	sidecar := corev1.Container{Name: "sidecar", RestartPolicy: new(corev1.ContainerRestartPolicyAlways)}
	tests := map[string]struct {
		name   string
		policy corev1.RestartPolicy
		code   int32
		over   bool
	}{
		"an init container that did its work":             {"init", corev1.RestartPolicyAlways, 0, true},
		"an init container that failed":                   {"init", corev1.RestartPolicyAlways, 1, false},
		"an init container that failed for good":          {"init", corev1.RestartPolicyNever, 1, true},
		"a sidecar":                                       {"sidecar", corev1.RestartPolicyAlways, 0, false},
		"a container that is always started again":        {"main", corev1.RestartPolicyAlways, 0, false},
		"a container that did its work":                   {"main", corev1.RestartPolicyOnFailure, 0, true},
		"a container that is started again when it fails": {"main", corev1.RestartPolicyOnFailure, 1, false},
		"a container that is never started again":         {"main", corev1.RestartPolicyNever, 1, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{Spec: corev1.PodSpec{
				RestartPolicy: test.policy, InitContainers: []corev1.Container{{Name: "init"}, sidecar}, Containers: []corev1.Container{{Name: "main"}},
			}}
			for _, of := range container.All(pod) {
				if container.IsOver(pod, of) {
					t.Errorf("%s is over before it began", of.Name)
				}
			}
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
				Name: test.name, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: test.code}},
			}}
			for _, of := range container.All(pod) {
				if over := container.IsOver(pod, of); over != (test.over && of.Name == test.name) {
					t.Errorf("that %s is over is %t", of.Name, over)
				}
			}
		})
	}
}
