package attach_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stowage-dev/stowage/internal/attach"
	"github.com/stowage-dev/stowage/test/harness/fixture"
)

var (
	runs  = corev1.ContainerStatus{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}
	waits = corev1.ContainerStatus{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{}}}
	ended = corev1.ContainerStatus{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}}
)

func TestNeedsVolumes(t *testing.T) {
	deleted := func(pod *corev1.Pod) { pod.DeletionTimestamp = &metav1.Time{Time: now} }
	containers := func(statuses ...corev1.ContainerStatus) func(*corev1.Pod) {
		return func(pod *corev1.Pod) { pod.Status.ContainerStatuses = statuses }
	}
	phase := func(phase corev1.PodPhase) func(*corev1.Pod) {
		return func(pod *corev1.Pod) { pod.Status.Phase = phase }
	}
	keeping := managed(func(node *corev1.Node) { node.Annotations[attach.KeepTerminatedAnnotation] = "true" })
	for _, test := range []struct {
		name    string
		node    *corev1.Node
		options []func(*corev1.Pod)
		want    bool
	}{
		{"one that is new", managed(), nil, true},
		{"one that has no node yet", managed(), []func(*corev1.Pod){func(pod *corev1.Pod) { pod.Spec.NodeName = "" }}, false},
		{"one with a node that is gone", nil, nil, true},
		{"one that succeeded", managed(), []func(*corev1.Pod){phase(corev1.PodSucceeded)}, false},
		{"one that failed", managed(), []func(*corev1.Pod){phase(corev1.PodFailed)}, false},
		{"one that runs, and is deleted", managed(), []func(*corev1.Pod){containers(ended, runs), deleted}, true},
		{"one that stopped, and is deleted", managed(), []func(*corev1.Pod){containers(ended, waits), deleted}, false},
		{"one that stopped, and isn't", managed(), []func(*corev1.Pod){containers(ended)}, true},
		{"one without a status, and is deleted", managed(), []func(*corev1.Pod){containers(corev1.ContainerStatus{}), deleted}, true},
		{"one that begins, and is deleted", managed(), []func(*corev1.Pod){func(pod *corev1.Pod) { pod.Status.InitContainerStatuses = []corev1.ContainerStatus{runs} }, deleted}, true},
		{"one that is debugged, and deleted", managed(), []func(*corev1.Pod){func(pod *corev1.Pod) { pod.Status.EphemeralContainerStatuses = []corev1.ContainerStatus{runs} }, deleted}, true},
		{"one that ended, on a node that keeps them", keeping, []func(*corev1.Pod){phase(corev1.PodFailed)}, true},
		{"one that stopped, on a node that keeps them", keeping, []func(*corev1.Pod){containers(ended), deleted}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			pod := fixture.Pod("user", here)
			for _, option := range test.options {
				option(pod)
			}
			if got := attach.NeedsVolumes(pod, test.node); got != test.want {
				t.Errorf("it needs its volumes: %v", got)
			}
		})
	}
}

func TestExplain(t *testing.T) {
	pod := fixture.Pod("user", here)
	near, far := *fixture.Pod("blocker", "node-2"), *fixture.Pod("secret", "node-2")
	far.Namespace = "elsewhere"
	elsewhere := func(nodes ...string) attach.Step {
		step := attach.Step{Action: attach.Wait, Cause: attach.AttachedElsewhere, Volume: disk("a")}
		for _, node := range nodes {
			step.OtherNodes = append(step.OtherNodes, attach.OtherNode{Node: node})
		}
		return step
	}
	for _, test := range []struct {
		step     attach.Step
		blockers []corev1.Pod
		want     string
	}{
		{elsewhere("node-2"), nil, `Multi-Attach error for volume "a": it can be on one node at a time, and node node-2 has it until it has unmounted it`},
		{elsewhere("node-3", "node-2", "node-3"), []corev1.Pod{near}, "nodes node-2, node-3 have it for these pods: blocker. This pod waits"},
		{elsewhere("node-2"), []corev1.Pod{far, near}, "for these pods: blocker, 1 in other namespaces."},
		{elsewhere("node-2"), []corev1.Pod{far}, "for these pods: 1 in other namespaces."},
		{attach.Step{Action: attach.Wait, Cause: attach.NodeOff, Volume: disk("a")}, nil, "is not attached to node node-1, which has the taint node.kubernetes.io/out-of-service"},
	} {
		if got := attach.Explain(test.step, pod, test.blockers); !strings.Contains(got, test.want) || strings.Contains(got, "secret") {
			t.Errorf("the text is %q, not %q", got, test.want)
		}
	}
	if got := attach.Explain(attach.Step{Action: attach.Wait, Cause: attach.Detaching}, pod, nil); got != "" {
		t.Errorf("what is over soon needs no event: %q", got)
	}
}
