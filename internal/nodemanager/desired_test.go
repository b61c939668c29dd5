package nodemanager

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stowage-dev/stowage/internal/nodemanager/nodetest"
	"github.com/stowage-dev/stowage/internal/nodemanager/podclaims"
	"github.com/stowage-dev/stowage/internal/nodemanager/resolve"
)

func TestWhichPodsNeedTheirVolumes(t *testing.T) {
	running := []corev1.ContainerStatus{{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
	waiting := []corev1.ContainerStatus{{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{}}}}
	stopped := []corev1.ContainerStatus{{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}}}
	tests := map[string]struct {
		deleting bool
		status   corev1.PodStatus
		want     bool
	}{
		"new":                                     {false, corev1.PodStatus{}, true},
		"pending":                                 {false, corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: waiting}, true},
		"running":                                 {false, corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: running}, true},
		"between two runs of its container":       {false, corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: stopped}, true},
		"succeeded":                               {false, corev1.PodStatus{Phase: corev1.PodSucceeded, ContainerStatuses: stopped}, false},
		"failed":                                  {false, corev1.PodStatus{Phase: corev1.PodFailed, ContainerStatuses: stopped}, false},
		"failed, says the phase, but running":     {false, corev1.PodStatus{Phase: corev1.PodFailed, ContainerStatuses: running}, true},
		"deleting, never started":                 {true, corev1.PodStatus{}, false},
		"deleting, running":                       {true, corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: running}, true},
		"deleting, one of two running":            {true, corev1.PodStatus{ContainerStatuses: append(stopped, running...)}, true},
		"deleting, an init container running":     {true, corev1.PodStatus{InitContainerStatuses: running}, true},
		"deleting, an ephemeral one running":      {true, corev1.PodStatus{EphemeralContainerStatuses: running, ContainerStatuses: stopped}, true},
		"deleting, containers stopped":            {true, corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: stopped}, false},
		"deleting, containers waiting":            {true, corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: waiting}, false},
		"deleting, succeeded, containers stopped": {true, corev1.PodStatus{Phase: corev1.PodSucceeded, ContainerStatuses: stopped}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{Status: test.status}
			if test.deleting {
				pod.DeletionTimestamp = new(metav1.Now())
			}
			if got := podclaims.NeedsVolumes(pod); got != test.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestTheDesiredStateIsKeptUntilItIsForgotten(t *testing.T) {
	var desired Desired
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: nodetest.SomePod}, Spec: corev1.PodSpec{Volumes: []corev1.Volume{{Name: "a"}, {Name: "b"}}}}
	wanted := desired.Want(pod)
	if len(wanted.Volumes) != 2 || wanted.Volumes[1].Volume.Name != "b" {
		t.Fatalf("got %+v", wanted)
	}
	wanted.Volumes[0].Resolved = &resolve.ResolvedVolume{}
	if desired.Want(pod).Volumes[0].Resolved == nil {
		t.Error("what was found out is gone")
	}
	desired.Forget(nodetest.SomePod)
	if desired.Want(pod).Volumes[0].Resolved != nil {
		t.Error("it wasn't forgotten")
	}
}
