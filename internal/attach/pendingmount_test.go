package attach_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stowage-dev/stowage/internal/attach"
	"github.com/stowage-dev/stowage/test/harness/fixture"
)

func TestMayBePendingMount(t *testing.T) {
	a := disk("a")
	ready := func(since time.Duration) func(*corev1.Node) {
		return func(node *corev1.Node) {
			node.Status.Conditions[0].LastTransitionTime = metav1.NewTime(ago(since))
		}
	}
	registered := func(node *corev1.Node) { node.CreationTimestamp = metav1.NewTime(ago(9 * time.Minute)) }
	gone := func(object *storagev1.VolumeAttachment) {
		object.DeletionTimestamp = &metav1.Time{Time: ago(5 * time.Minute)}
	}
	for _, test := range []struct {
		name string
		node *corev1.Node
		may  bool
	}{
		{"a node that was Ready before it was unmarked", managed(using(a), ready(time.Hour)), true},
		{"not one with it in volumesAttached", managed(using(a), marked(a.Name), ready(time.Hour)), false},
		{"not one that became Ready since: it may have been unmarked by force", managed(using(a), ready(2*time.Minute)), false},
		{"not one that was Ready just before: it may have another clock", managed(using(a), ready(5*time.Minute+30*time.Second)), false},
		{"not one that isn't Ready", managed(using(a), ready(time.Hour), notReady), false},
		{"not one with the out-of-service taint", managed(using(a), ready(time.Hour), outOfService), false},
		{"not one that registered since it was attached", managed(using(a), registered, ready(9*time.Minute)), false},
		{"not one that is Ready since an unknown time", managed(using(a)), false},
	} {
		t.Run(test.name, func(t *testing.T) {
			object := attachmentOn(here, a, createdAt(ago(10*time.Minute)), gone)
			if got := attach.MayBePendingMount(test.node, a.Name, object); got != test.may {
				t.Errorf("it may: %v", got)
			}
		})
	}
	if attach.MayBePendingMount(managed(using(a), ready(time.Hour)), a.Name, attachmentOn(here, a)) {
		t.Error("a mount pends for an attachment that is not deleted")
	}
}

func TestArePendingMounts(t *testing.T) {
	ending := func(pod *corev1.Pod) { pod.DeletionTimestamp = &metav1.Time{Time: ago(time.Second)} }
	phase := func(phase corev1.PodPhase) func(*corev1.Pod) {
		return func(pod *corev1.Pod) { pod.Status.Phase = phase }
	}
	main := func(status corev1.ContainerStatus) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			pod.Status.Phase, pod.Status.ContainerStatuses = corev1.PodPending, []corev1.ContainerStatus{status}
		}
	}
	var creating, crashed, prepared corev1.ContainerStatus
	creating.State.Waiting = &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}
	crashed.State.Waiting, crashed.LastTerminationState.Terminated = creating.State.Waiting, &corev1.ContainerStateTerminated{}
	prepared.State.Terminated = &corev1.ContainerStateTerminated{}
	init := func(pod *corev1.Pod) { pod.Status.InitContainerStatuses = []corev1.ContainerStatus{prepared} }
	sandboxed := func(pod *corev1.Pod) {
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReadyToStartContainers, Status: corev1.ConditionTrue}}
	}
	pod := func(options ...func(*corev1.Pod)) *corev1.Pod {
		pod := fixture.Pod("user", here)
		for _, option := range options {
			option(pod)
		}
		return pod
	}
	for _, test := range []struct {
		name string
		pods []*corev1.Pod
		only bool
	}{
		{"no pod at all", nil, false},
		{"one that was just placed", []*corev1.Pod{pod()}, true},
		{"one whose containers are to be created", []*corev1.Pod{pod(main(creating))}, true},
		{"one that runs", []*corev1.Pod{pod(phase(corev1.PodRunning))}, false},
		{"one whose container crashed", []*corev1.Pod{pod(main(crashed))}, false},
		{"one that was prepared", []*corev1.Pod{pod(main(creating), init)}, false},
		{"one that pulls its image", []*corev1.Pod{pod(main(creating), sandboxed)}, false},
		{"one that ends", []*corev1.Pod{pod(main(creating), ending)}, false},
		{"one that was just placed, while another ends", []*corev1.Pod{pod(), pod(ending)}, false},
		{"one that was just placed, while another that ended is being removed", []*corev1.Pod{pod(), pod(phase(corev1.PodSucceeded), ending)}, false},
		{"one that was just placed, beside one that ended", []*corev1.Pod{pod(), pod(phase(corev1.PodSucceeded))}, true},
		{"one that ended", []*corev1.Pod{pod(phase(corev1.PodSucceeded))}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := attach.ArePendingMounts(test.pods); got != test.only {
				t.Errorf("they are pending mounts: %v", got)
			}
		})
	}
}
