package facts_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/kubectl/facts"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

var noon = metav1.NewTime(time.Date(2030, 1, 2, 12, 0, 0, 0, time.UTC))

// released is a volume of a driver of Stowage's whose claim is gone, within its undelete window.
func released(change func(*corev1.PersistentVolume)) *corev1.PersistentVolume {
	pv := Volume("v", Reclaimed(corev1.PersistentVolumeReclaimDelete), ReservedTo("data"))
	pv.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: stowagev1alpha1.NFSDriver}}
	pv.Status = corev1.PersistentVolumeStatus{Phase: corev1.VolumeReleased, Reason: "UndeletableUntil2030-01-02T13:00:00Z"}
	change(pv)
	return pv
}

func TestRetainedIsWhatTheManagerWrote(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*corev1.PersistentVolume)
		want   string
	}{
		"released":               {func(*corev1.PersistentVolume) {}, "2030-01-02T13:00:00Z"},
		"released, then deleted": {func(pv *corev1.PersistentVolume) { pv.DeletionTimestamp = &noon }, "2030-01-02T13:00:00Z"},
		"deleted without being freed": {func(pv *corev1.PersistentVolume) {
			pv.DeletionTimestamp, pv.Status.Phase = &noon, corev1.VolumeAvailable
		}, "2030-01-02T13:00:00Z"},
		"bound and deleted": {func(pv *corev1.PersistentVolume) { pv.DeletionTimestamp, pv.Status.Phase = &noon, corev1.VolumeBound }, ""},
		"bound":             {func(pv *corev1.PersistentVolume) { pv.Status.Phase = corev1.VolumeBound }, ""},
		"policy Retain": {func(pv *corev1.PersistentVolume) {
			pv.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
		}, "kept"},
		"without a window":   {func(pv *corev1.PersistentVolume) { pv.Status.Reason, pv.Status.LastPhaseTransitionTime = "", &noon }, ""},
		"of another program": {func(pv *corev1.PersistentVolume) { pv.Status.Reason = "VolumeFailedDelete" }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := facts.Retained(released(test.change)).String(); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestBytesAreShort(t *testing.T) {
	for text, want := range map[string]string{"0": "0", "1023": "1023", "1Gi": "1Gi", "1536Mi": "1.5Gi", "5000G": "4.5Ti"} {
		if got := facts.Bytes(ptr.To(resource.MustParse(text))); got != want {
			t.Errorf("%s becomes %s, want %s", text, got, want)
		}
	}
	if got := facts.Bytes(nil); got != "" {
		t.Errorf("nothing becomes %q", got)
	}
}

func TestHealthNamesTheWorstFirst(t *testing.T) {
	sick := &stowagev1alpha1.NodeVolume{Status: stowagev1alpha1.NodeVolumeStatus{Conditions: []metav1.Condition{
		{Type: "Ready", Status: metav1.ConditionTrue}, {Type: "Healthy", Status: metav1.ConditionFalse, Reason: "IOError", Message: "bad"},
	}}}
	for name, test := range map[string]struct {
		pv         *corev1.PersistentVolume
		nodeVolume *stowagev1alpha1.NodeVolume
		lost       bool
		want       string
	}{
		"lost":      {Volume("v"), sick, true, "Lost"},
		"sick":      {Volume("v"), sick, false, "IOError"},
		"no record": {Volume("v"), nil, false, ""},
		"failed":    {&corev1.PersistentVolume{Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeFailed}}, nil, false, "Failed"},
		"going":     {&corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &noon}}, nil, false, "Terminating"},
	} {
		if got, _ := facts.Health(test.pv, test.nodeVolume, test.lost); got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}

func TestTheNodeOfAVolume(t *testing.T) {
	if got := facts.Node(Volume("v", OnNode("node-1"))); got != "node-1" {
		t.Errorf("got %q", got)
	}
	if got := facts.Node(Volume("v")); got != "" {
		t.Errorf("got %q", got)
	}
}
