package status_test

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/kubectl/kubectltest"
	"github.com/stowage-dev/stowage/internal/kubectl/status"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

func ago(d time.Duration) metav1.Time { return metav1.NewTime(kubectltest.Now.Add(-d)) }

// objects are a backend that is full, one that doesn't answer, and what waits for them.
func objects() []client.Object {
	fast, cloud := LocalBackend("fast"), LocalBackend("cloud")
	fast.Status = stowagev1alpha1.StorageBackendStatus{
		Type: stowagev1alpha1.LocalType, Conditions: []metav1.Condition{{Type: "Ready", Status: metav1.ConditionTrue}},
		Capacity: &stowagev1alpha1.BackendCapacity{Total: ptr.To(resource.MustParse("10Gi")), Used: ptr.To(resource.MustParse("1Gi"))},
		Volumes:  ptr.To(int32(3)), Orphans: ptr.To(int32(1)), LostVolumes: ptr.To(int32(0)),
	}
	cloud.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: metav1.ConditionFalse, Reason: "Unavailable", Message: "no answer"}}
	disk := &stowagev1alpha1.NodeDisk{
		ObjectMeta: metav1.ObjectMeta{Name: "fast-node-1"}, Spec: stowagev1alpha1.NodeDiskSpec{NodeName: "node-1", Backend: "fast"},
		Status: stowagev1alpha1.NodeDiskStatus{Available: ptr.To(resource.MustParse("0")), Total: ptr.To(resource.MustParse("10Gi")), Conditions: []metav1.Condition{
			{Type: "Ready", Status: metav1.ConditionTrue}, {Type: "HasRoom", Status: metav1.ConditionFalse, Reason: "Full", Message: "0 is left"},
		}},
	}
	gone := disk.DeepCopy()
	gone.Name, gone.Spec.NodeName = "fast-node-9", "node-9"
	pending, bound := Claim(InClass("fast")), Claim(ClaimNamed("bound"), AskingFor("v"))
	pending.CreationTimestamp, bound.Status.Phase = ago(time.Hour), corev1.ClaimBound
	pending.Status.Conditions = []corev1.PersistentVolumeClaimCondition{{Type: stowagev1alpha1.BindableCondition, Status: "False", Reason: "Exhausted", Message: "no node has room"}}
	attachment := &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: "a", CreationTimestamp: ago(time.Minute)},
		Spec:       storagev1.VolumeAttachmentSpec{NodeName: "node-2", Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: ptr.To("v")}},
		Status:     storagev1.VolumeAttachmentStatus{AttachError: &storagev1.VolumeError{Message: "limit"}},
	}
	released := Volume("released", ReservedTo("old"), Reclaimed(corev1.PersistentVolumeReclaimDelete))
	released.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: stowagev1alpha1.LocalDriver, VolumeHandle: "released", VolumeAttributes: map[string]string{"backend": "fast"}}}
	released.Status = corev1.PersistentVolumeStatus{Phase: corev1.VolumeReleased, Reason: "UndeletableUntil2030-01-02T13:00:00Z"}
	pod := Pod("db", "node-1", "bound")
	pod.Status.Conditions = []corev1.PodCondition{{Type: stowagev1alpha1.VolumesReadyCondition, Status: "False", Reason: "Mounting", Message: "busy", LastTransitionTime: ago(time.Second)}}
	return []client.Object{fast, cloud, disk, gone, Node("node-1"), Node("node-2"), pending, bound, attachment, released, pod}
}

func TestStatusShowsBackendsNodesAndWhatWaits(t *testing.T) {
	got, err := kubectltest.Run(t.Context(), status.New, "", kubectltest.Client(objects()...))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"fast Local True 10Gi 1Gi 3 1 0 -",
		"cloud - False - - - - - Unavailable: no answer",
		"node-1 True fast Full 0 10Gi 0 Full: 0 is left",
		"node-2 True - - - - 0 -",
		"node-9 False fast Full 0 10Gi 0 Full: 0 is left",
		"1: 1 Released; the data of 1 without a claim is kept (kubectl stowage list --retained), the first until 2030-01-02T13:00:00Z",
		"claim default/data 60m Exhausted: no node has room\nattachment v on node-2 60s can't be attached: limit\npod default/db 1s Mounting: busy",
	} {
		if !strings.Contains(squeezed(got.Out), want) {
			t.Errorf("want %q in\n%s", want, got.Out)
		}
	}
}

func TestStatusShowsWhereClaimsAreAttachedAndMounted(t *testing.T) {
	got, err := kubectltest.Run(t.Context(), status.New, "-o wide", kubectltest.Client(objects()...))
	if want := "default/bound Bound v - node-2 (in progress) db on node-1 (not mounted yet)"; err != nil || !strings.Contains(squeezed(got.Out), want) {
		t.Errorf("want %q, got %v\n%s", want, err, got.Out)
	}
}

func TestStatusShowsVolumesThatNoClaimHas(t *testing.T) {
	got, err := kubectltest.Run(t.Context(), status.New, "-o wide", kubectltest.Client(objects()...))
	if want := "- Released (data kept until 2030-01-02T13:00:00Z) released 1Gi - -\n"; err != nil || !strings.Contains(squeezed(got.Out), want) {
		t.Errorf("want %q, got %v\n%s", want, err, got.Out)
	}
}

func TestStatusSaysWhyWhereOnlyEventsDo(t *testing.T) {
	claim := Claim(ClaimUID("c"))
	claim.Status.Phase, claim.CreationTimestamp = corev1.ClaimPending, ago(time.Minute)
	pod := Pod("web", "node-1")
	pod.UID, pod.Status.Phase, pod.CreationTimestamp = "p", corev1.PodPending, ago(time.Second)
	event := func(name, kind string, uid types.UID, age time.Duration, severity, reason, note string) *corev1.Event {
		return &corev1.Event{
			ObjectMeta:     metav1.ObjectMeta{Namespace: "default", Name: name},
			InvolvedObject: corev1.ObjectReference{Kind: kind, UID: uid}, LastTimestamp: ago(age), Type: severity, Reason: reason, Message: note,
		}
	}
	got, err := kubectltest.Run(t.Context(), status.New, "", kubectltest.Client(claim, pod,
		event("1", "PersistentVolumeClaim", "c", 0, "Normal", "WaitForFirstConsumer", "waiting"),
		event("2", "PersistentVolumeClaim", "c", time.Minute, "Warning", "ProvisioningFailed", "no such mode"),
		event("3", "PersistentVolumeClaim", "c", 2*time.Hour, "Warning", "Other", "old"),
		event("4", "Pod", "p", 0, "Warning", "BackOff", "no image"),
		event("5", "Pod", "p", time.Second, "Warning", "FailedMount", "no answer"),
	))
	if want := "claim default/data 60s ProvisioningFailed: no such mode\npod default/web 1s FailedMount: no answer\n"; err != nil || !strings.Contains(squeezed(got.Out), want) {
		t.Errorf("want %q, got %v\n%s", want, err, got.Out)
	}
}

func TestAFrameThatIsInterruptedIsNotDrawn(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	interrupted := interceptor.NewClient(kubectltest.Client(objects()...), interceptor.Funcs{
		List: func(ctx context.Context, _ client.WithWatch, _ client.ObjectList, _ ...client.ListOption) error {
			stop()
			return ctx.Err()
		},
	})
	if got, err := kubectltest.Run(ctx, status.New, "--watch", interrupted); err != nil || got.Out != "" {
		t.Errorf("%v\n%s", err, got.Out)
	}
}

func TestStatusOfAnEmptyClusterSaysWhatToDo(t *testing.T) {
	got, err := kubectltest.Run(t.Context(), status.New, "", kubectltest.Client())
	if err != nil || !strings.Contains(got.Out, "There is no StorageBackend: create one") || !strings.Contains(got.Out, "Nothing waits.") {
		t.Errorf("%v\n%s", err, got.Out)
	}
}

func TestStatusIsDrawnAgainUntilItIsStopped(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	reads := 0
	counting := interceptor.NewClient(kubectltest.Client(objects()...), interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if _, is := list.(*corev1.PodList); is {
				reads++
				if reads == 2 {
					stop()
				}
			}
			return c.List(ctx, list, options...)
		},
	})
	got, err := kubectltest.Run(ctx, status.New, "--watch --interval 1s", counting)
	if err != nil || strings.Count(got.Out, "Backends\n") != 2 || strings.Count(got.Out, "default/bound") != 2 || strings.Contains(got.Out, "\x1b") {
		t.Errorf("%v after %d reads\n%s", err, reads, got.Out)
	}
}

func TestStatusRefusesToWatchForPrograms(t *testing.T) {
	for arguments, want := range map[string]string{"--watch -o json": "--watch prints text", "--watch --interval 1ms": "--interval is at least 1s"} {
		if _, err := kubectltest.Run(t.Context(), status.New, arguments, kubectltest.Client()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: want %q, got %v", arguments, want, err)
		}
	}
}

// squeezed has one space between columns.
func squeezed(text string) string {
	var lines string
	for line := range strings.Lines(text) {
		lines += strings.Join(strings.Fields(line), " ") + "\n"
	}
	return lines
}
