package localvolume

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func newTestLanes(t *testing.T) *lanes {
	t.Helper()
	lanes := newLanes()
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	t.Cleanup(queue.ShutDown)
	if err := lanes.Start(t.Context(), queue); err != nil {
		t.Fatal(err)
	}
	return lanes
}

func passOver(i int) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Name: fmt.Sprintf("pvc-%d", i)}}
}

// crowd enters a lane until nobody more gets in, and parks others behind.
func crowd(t *testing.T, lanes *lanes, path string, parked int) {
	t.Helper()
	for i := range concurrentVolumes + parked {
		if entered := lanes.enter(path, passOver(i)); entered != (i < concurrentVolumes) {
			t.Fatalf("pass %d entered: %v", i, entered)
		}
	}
}

func TestAFolderWhoseLaneIsFullHoldsUpNoOther(t *testing.T) {
	lanes := newTestLanes(t)
	crowd(t, lanes, "/base/hung", 10)
	if !lanes.enter("/base/well", passOver(100)) {
		t.Error("a volume of another folder was held up")
	}
}

func TestThoseWhoAreParkedAreCalledInTurnAndFindTheirPlaceKept(t *testing.T) {
	lanes := newTestLanes(t)
	crowd(t, lanes, "/base/fast", 2)
	lanes.leave("/base/fast")
	if called, _ := lanes.queue.Get(); called != passOver(concurrentVolumes) {
		t.Errorf("%v was called", called)
	}
	if lanes.enter("/base/fast", passOver(50)) {
		t.Error("another took the place that was kept")
	}
	if !lanes.enter("/base/fast", passOver(concurrentVolumes)) {
		t.Error("who was called didn't find its place")
	}
}

func TestAVolumeThatIsGoneWhenItIsCalledGivesItsPlaceToTheNext(t *testing.T) {
	lanes := newTestLanes(t)
	crowd(t, lanes, "/base/fast", 2)
	lanes.leave("/base/fast")
	lanes.drop(passOver(concurrentVolumes))
	if !lanes.enter("/base/fast", passOver(concurrentVolumes+1)) {
		t.Error("the next didn't get the place")
	}
}

func TestALaneIsForgottenWhenNobodyIsInIt(t *testing.T) {
	lanes := newTestLanes(t)
	crowd(t, lanes, "/base/fast", 1)
	for range concurrentVolumes {
		lanes.leave("/base/fast")
	}
	if !lanes.enter("/base/fast", passOver(concurrentVolumes)) {
		t.Fatal("who was called didn't find its place")
	}
	lanes.leave("/base/fast")
	if len(lanes.byPath)+len(lanes.called) != 0 {
		t.Errorf("left are %v and %v", lanes.byPath, lanes.called)
	}
}

func TestAVolumeMadeAnewInAnotherFolderLeavesThePlaceOfTheOld(t *testing.T) {
	lanes := newTestLanes(t)
	crowd(t, lanes, "/base/fast", 1)
	lanes.leave("/base/fast")
	if !lanes.enter("/base/slow", passOver(concurrentVolumes)) {
		t.Error("it didn't enter the lane of its new folder")
	}
	if !lanes.enter("/base/fast", passOver(99)) {
		t.Error("the place in the old one wasn't given back")
	}
}
