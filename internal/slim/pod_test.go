package slim

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/stowage-dev/stowage/internal/attach"
	"github.com/stowage-dev/stowage/internal/uses"
)

func TestOfAPodItsVolumesAndWhetherTheyMayBeInUseStay(t *testing.T) {
	got := usedPod()
	slimmed(t, got)
	now := got.DeletionTimestamp
	want := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: "db", UID: "1", ResourceVersion: "7", Finalizers: []string{"example.com/keeps"},
			DeletionTimestamp: now, DeletionGracePeriodSeconds: ptr.To[int64](30),
		},
		Spec: corev1.PodSpec{NodeName: "node1", Volumes: []corev1.Volume{
			{Name: "data", VolumeSource: usedPod().Spec.Volumes[0].VolumeSource},
			{Name: "scratch", VolumeSource: usedPod().Spec.Volumes[1].VolumeSource},
			{Name: "disk", VolumeSource: usedPod().Spec.Volumes[2].VolumeSource},
		}},
		Status: corev1.PodStatus{
			Phase:                 corev1.PodRunning,
			Conditions:            []corev1.PodCondition{{Type: corev1.PodReadyToStartContainers, Status: corev1.ConditionTrue}},
			InitContainerStatuses: []corev1.ContainerStatus{{State: corev1.ContainerState{Terminated: terminated}}},
			ContainerStatuses: []corev1.ContainerStatus{
				{State: corev1.ContainerState{Running: running}, LastTerminationState: corev1.ContainerState{Terminated: terminated}},
				{State: corev1.ContainerState{Waiting: waiting}},
			},
		},
	}
	if !equality.Semantic.DeepEqual(got, want) {
		t.Errorf("it is\n%+v\nwanted\n%+v", got, want)
	}
}

// What decides about a pod's volumes has the same answer for the pod as the API server has it.
func TestASlimPodIsJudgedAsAWholeOne(t *testing.T) {
	states := []corev1.ContainerState{
		{},
		{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}},
		{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}},
		{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1}},
	}
	for _, phase := range []corev1.PodPhase{"", corev1.PodPending, corev1.PodRunning, corev1.PodSucceeded, corev1.PodFailed} {
		for _, deleted := range []*metav1.Time{nil, ptr.To(metav1.Now())} {
			for _, ready := range []corev1.ConditionStatus{"", corev1.ConditionFalse, corev1.ConditionTrue} {
				for _, state := range states {
					for _, last := range states {
						whole := &corev1.Pod{}
						whole.DeletionTimestamp, whole.Status.Phase = deleted, phase
						whole.Spec.NodeName = "node1"
						whole.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "db", State: state, LastTerminationState: last}}
						if ready != "" {
							whole.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}, {Type: corev1.PodReadyToStartContainers, Status: ready}}
						}
						slim := whole.DeepCopy()
						slimmed(t, slim)
						if got, want := judged(slim), judged(whole); got != want {
							t.Errorf("%+v is judged %v, and slim %v", whole.Status, want, got)
						}
					}
				}
			}
		}
	}
}

func judged(pod *corev1.Pod) [5]bool {
	return [5]bool{
		uses.IsFinished(pod), uses.HasEnded(pod), attach.HasStopped(pod),
		attach.NeedsVolumes(pod, &corev1.Node{}), attach.ArePendingMounts([]*corev1.Pod{pod}),
	}
}

func usedPod() *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: "db", UID: "1", ResourceVersion: "7", Finalizers: []string{"example.com/keeps"},
		DeletionTimestamp: ptr.To(metav1.NewTime(time.Unix(1, 0))), DeletionGracePeriodSeconds: ptr.To[int64](30),
		Labels: map[string]string{"app": "db"}, Annotations: map[string]string{"example.com/note": "x"},
		OwnerReferences: []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "db"}},
	}}
	pod.Spec = corev1.PodSpec{
		NodeName: "node1", ServiceAccountName: "db", Containers: []corev1.Container{{Name: "db", Image: "db"}},
		Volumes: []corev1.Volume{
			{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}},
			{Name: "scratch", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{}}}},
			{Name: "disk", VolumeSource: corev1.VolumeSource{GCEPersistentDisk: &corev1.GCEPersistentDiskVolumeSource{PDName: "disk"}}},
			{Name: "settings", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{}}},
			{Name: "token", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{}}},
		},
	}
	started := corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}}
	ended := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Completed"}}
	pod.Status = corev1.PodStatus{
		Phase: corev1.PodRunning, PodIP: "10.0.0.1",
		Conditions: []corev1.PodCondition{
			{Type: corev1.PodReady, Status: corev1.ConditionTrue},
			{Type: corev1.PodReadyToStartContainers, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()},
		},
		InitContainerStatuses: []corev1.ContainerStatus{{Name: "prepare", State: ended}},
		ContainerStatuses: []corev1.ContainerStatus{
			{Name: "db", State: started, LastTerminationState: ended, ContainerID: "containerd://1"},
			{Name: "proxy", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}},
		},
	}
	return pod
}
