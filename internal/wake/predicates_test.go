package wake

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"
)

func TestObjectsThatAreThereAtTheStartWakeNothing(t *testing.T) {
	node := &corev1.Node{}
	if NotAtStart.Create(event.CreateEvent{Object: node, IsInInitialList: true}) {
		t.Error("one that was there wakes others")
	}
	if !NotAtStart.Create(event.CreateEvent{Object: node}) {
		t.Error("a new one doesn't wake others")
	}
	if !NotAtStart.Update(event.UpdateEvent{ObjectOld: node, ObjectNew: node}) || !NotAtStart.Delete(event.DeleteEvent{Object: node}) {
		t.Error("a change or a deletion doesn't wake others")
	}
}
