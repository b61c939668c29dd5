package nodevolume

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	. "github.com/stowage-dev/stowage/test/harness/fixture"
)

func onLocalDisk(pv *corev1.PersistentVolume) {
	pv.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
		Driver: stowagev1alpha1.LocalDriver, VolumeHandle: "pvc-1",
		VolumeAttributes: map[string]string{stowagev1alpha1.BackendAttribute: "fast"},
	}}
}

func TestAChangeOfAVolumeWakesItsAdoption(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*corev1.PersistentVolume)
		want   bool
	}{
		"when it may be on another node": {OnNode("node-a"), true},
		"when it is for another claim":   {ReservedTo("other"), true},
		"when it was recreated":          {func(pv *corev1.PersistentVolume) { pv.UID = "2" }, true},
		"but not when it gets a phase":   {func(pv *corev1.PersistentVolume) { pv.Status.Phase = corev1.VolumeBound }, false},
		"but not in a resync":            {func(*corev1.PersistentVolume) {}, false},
	} {
		t.Run(name, func(t *testing.T) {
			before := Volume("v", onLocalDisk)
			after := before.DeepCopy()
			test.change(after)
			if got := onlyLocal.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}); got != test.want {
				t.Errorf("it wakes it: %t", got)
			}
		})
	}
}

func TestVolumesOfOtherBackendsHaveNoAdoption(t *testing.T) {
	local, other := Volume("local", onLocalDisk), Volume("other")
	if !onlyLocal.Create(event.CreateEvent{Object: local}) || onlyLocal.Create(event.CreateEvent{Object: other}) {
		t.Error("a local volume wakes its adoption, and no other does")
	}
}
