package main

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/stowage-dev/stowage/test/harness/fixture"
)

func TestTheCacheKeepsWhatIsRead(t *testing.T) {
	object := metav1.ObjectMeta{
		Name: "a", Labels: map[string]string{"disk": "ssd"},
		Annotations:   map[string]string{corev1.LastAppliedConfigAnnotation: "{}", "example.com/rack": "7"},
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubectl"}},
	}
	kept := metav1.ObjectMeta{Name: "a", Labels: object.Labels, Annotations: map[string]string{"example.com/rack": "7"}}
	capacity := corev1.NodeStatus{Phase: corev1.NodeRunning}
	loaded := capacity
	loaded.Images = []corev1.ContainerImage{{Names: []string{"pause"}}}
	gone := toolscache.DeletedFinalStateUnknown{Key: "a"}
	claim := fixture.Claim()
	claim.Status.Capacity = claim.Spec.Resources.Requests.DeepCopy()
	for name, test := range map[string]struct{ object, want any }{
		"a volume":          {&corev1.PersistentVolume{ObjectMeta: *object.DeepCopy()}, &corev1.PersistentVolume{ObjectMeta: kept}},
		"a node":            {&corev1.Node{ObjectMeta: *object.DeepCopy(), Status: loaded}, &corev1.Node{ObjectMeta: kept, Status: capacity}},
		"a bound claim":     {claim.DeepCopy(), claim},
		"a pod, plain":      {&corev1.Pod{}, &corev1.Pod{}},
		"what is no object": {gone, gone},
	} {
		got, err := withoutBallast(test.object)
		if err != nil || !equality.Semantic.DeepEqual(got, test.want) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}
