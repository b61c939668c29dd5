package main

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
)

func TestFactsOf(t *testing.T) {
	for _, c := range []struct {
		name   string
		object client.Object
		want   []string
	}{
		{"a claim that waits", &corev1.PersistentVolumeClaim{Status: corev1.PersistentVolumeClaimStatus{
			Phase: corev1.ClaimPending,
			Conditions: []corev1.PersistentVolumeClaimCondition{
				{Type: stowagev1alpha1.BindableCondition, Status: corev1.ConditionFalse, Reason: "NoVolume", Message: "1 too small"},
			},
		}}, []string{"stowage.dev/Bindable=False (NoVolume): 1 too small", "Pending"}},
		{"a bound claim", &corev1.PersistentVolumeClaim{
			Spec:   corev1.PersistentVolumeClaimSpec{VolumeName: "pvc-1"},
			Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound},
		}, []string{"Bound to pvc-1"}},
		{"a bound volume", &corev1.PersistentVolume{
			Spec: corev1.PersistentVolumeSpec{
				Capacity:                      corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("10Gi")},
				PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
				ClaimRef:                      &corev1.ObjectReference{Namespace: "default", Name: "data"},
			},
			Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeBound},
		}, []string{"Bound, 10Gi, Retain, claim default/data"}},
		{"a pod without a node", &corev1.Pod{}, []string{"has no node: there is no scheduler, set spec.nodeName"}},
		{"a pod that goes", &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &metav1.Time{}},
			Spec:       corev1.PodSpec{NodeName: "n"},
		}, []string{"on node n", "is being deleted"}},
		{"a backend", &stowagev1alpha1.StorageBackend{Status: stowagev1alpha1.StorageBackendStatus{
			Conditions: []metav1.Condition{{Type: "Ready", Status: metav1.ConditionTrue, Reason: "Ready"}},
		}}, []string{"Ready=True"}},
		{"an attachment that fails", &storagev1.VolumeAttachment{
			Spec: storagev1.VolumeAttachmentSpec{
				NodeName: "n", Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: new("pvc-1")},
			},
			Status: storagev1.VolumeAttachmentStatus{AttachError: &storagev1.VolumeError{Message: "no quota"}},
		}, []string{"volume pvc-1 is being attached to n", "no quota"}},
		{"an event", &corev1.Event{Reason: "FailedBinding", Message: "no volume"}, []string{"FailedBinding: no volume"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			for _, fact := range factsOf(c.object) {
				got = append(got, fact.text)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestNameOf(t *testing.T) {
	event := &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: "default", Name: "data.18f"},
		InvolvedObject: corev1.ObjectReference{Name: "pvc-1"},
	}
	if got := nameOf(event); got != "pvc-1" {
		t.Errorf("an event about a volume is called %q", got)
	}
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "data"}}
	if got := nameOf(claim); got != "default/data" {
		t.Errorf("a claim is called %q", got)
	}
}
