package storagebackend

import (
	"maps"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/wake"
)

// woken is a queue that notes what is added, and after which delay.
type woken struct {
	wake.Queue
	after map[string]time.Duration
}

func (w woken) Add(request reconcile.Request) { w.after[request.Name] = 0 }

func (w woken) AddAfter(request reconcile.Request, delay time.Duration) {
	w.after[request.Name] = delay
}

// A volume on a node changes several times while it is made, and each look at a backend reads all of its volumes.
func TestOfVolumesOnNodesOnlyThoseThatAreGoneWakeTheirBackend(t *testing.T) {
	queue, volume := woken{after: map[string]time.Duration{}}, &stowagev1alpha1.NodeVolume{Spec: stowagev1alpha1.NodeVolumeSpec{Backend: "disks"}}
	left := leftLater()
	left.Create(t.Context(), event.CreateEvent{Object: volume}, queue)
	left.Update(t.Context(), event.UpdateEvent{ObjectOld: volume, ObjectNew: volume}, queue)
	if len(queue.after) > 0 {
		t.Errorf("a volume that is made wakes %v", queue.after)
	}
	left.Delete(t.Context(), event.DeleteEvent{Object: volume}, queue)
	if want := map[string]time.Duration{"disks": countDelay}; !maps.Equal(queue.after, want) {
		t.Errorf("a volume that is gone wakes %v, wanted %v", queue.after, want)
	}
}
