package main

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
)

func ofType(machineType string) *corev1.Node {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}
	if machineType != "" {
		node.Labels = map[string]string{corev1.LabelInstanceTypeStable: machineType}
	}
	return node
}

func TestANodeTakesAsManyDisksAsItsMachineType(t *testing.T) {
	for machineType, want := range map[string]int64{
		"": 127, "n1-standard-1": 127, "e2-standard-2": 127, "custom-2-4096": 127, "c3-standard-4": 127, "something": 127,
		"e2-micro": 15, "e2-medium": 15, "f1-micro": 15, "g1-small": 15,
		"c4-standard-2": 7, "c4-standard-48": 63, "c4-standard-192": 127, "c4a-standard-4": 15, "c4a-standard-32-lssd": 31,
		"n4-custom-8-12345-ext": 15, "n4-standard-16": 31, "c4d-standard-32": 31, "n4-micro": 127,
	} {
		node := ofType(machineType)
		own := options{nodeName: "n1"}
		info, err := own.inZone(fake.NewClientBuilder().WithObjects(node).Build())(t.Context())
		if err != nil || info.MaxVolumes != want {
			t.Errorf("%q: the kubelet gets %d, %v, want %d", machineType, info.MaxVolumes, err, want)
		}
		for _, driver := range own.drivers(node) {
			if driver.Name == stowagev1alpha1.GCEDriver && (driver.Allocatable == nil || int64(*driver.Allocatable.Count) != want) {
				t.Errorf("%q: without a kubelet %v is said", machineType, driver.Allocatable)
			}
		}
	}
}

func TestWhatIsAskedForComesBeforeTheMachineType(t *testing.T) {
	own := options{nodeName: "n1", maxDisks: 30}
	info, err := own.inZone(fake.NewClientBuilder().WithObjects(ofType("e2-micro")).Build())(t.Context())
	if err != nil || info.MaxVolumes != 30 {
		t.Errorf("the kubelet gets %d, %v, want 30", info.MaxVolumes, err)
	}
}
