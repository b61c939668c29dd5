package slots

import (
	"fmt"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func newTestLanes(t *testing.T) *Lanes {
	t.Helper()
	lanes := NewLanes()
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

func shortIn(path string) Pass { return Pass{Path: path} }

func longIn(path, namespace string) Pass { return Pass{Path: path, Namespace: namespace, Long: true} }

// crowd enters a lane until nobody more gets in, and parks others behind.
func crowd(t *testing.T, lanes *Lanes, path string, parked int) {
	t.Helper()
	for i := range concurrentVolumes + parked {
		if entered := lanes.Enter(shortIn(path), passOver(i)); entered != (i < concurrentVolumes) {
			t.Fatalf("pass %d entered: %v", i, entered)
		}
	}
}

func TestAFolderWhoseLaneIsFullHoldsUpNoOther(t *testing.T) {
	lanes := newTestLanes(t)
	crowd(t, lanes, "/base/hung", 10)
	if !lanes.Enter(shortIn("/base/well"), passOver(100)) {
		t.Error("a volume of another folder was held up")
	}
}

func TestThoseWhoAreParkedAreCalledInTurnAndFindTheirPlaceKept(t *testing.T) {
	lanes := newTestLanes(t)
	crowd(t, lanes, "/base/fast", 2)
	lanes.Leave(shortIn("/base/fast"))
	if called, _ := lanes.queue.Get(); called != passOver(concurrentVolumes) {
		t.Errorf("%v was called", called)
	}
	if lanes.Enter(shortIn("/base/fast"), passOver(50)) {
		t.Error("another took the place that was kept")
	}
	if !lanes.Enter(shortIn("/base/fast"), passOver(concurrentVolumes)) {
		t.Error("who was called didn't find its place")
	}
}

func TestAVolumeThatIsGoneWhenItIsCalledGivesItsPlaceToTheNext(t *testing.T) {
	lanes := newTestLanes(t)
	crowd(t, lanes, "/base/fast", 2)
	lanes.Leave(shortIn("/base/fast"))
	lanes.Drop(passOver(concurrentVolumes))
	if !lanes.Enter(shortIn("/base/fast"), passOver(concurrentVolumes+1)) {
		t.Error("the next didn't get the place")
	}
}

func TestALaneIsForgottenWhenNobodyIsInIt(t *testing.T) {
	lanes := newTestLanes(t)
	crowd(t, lanes, "/base/fast", 1)
	for range concurrentVolumes {
		lanes.Leave(shortIn("/base/fast"))
	}
	if !lanes.Enter(shortIn("/base/fast"), passOver(concurrentVolumes)) {
		t.Fatal("who was called didn't find its place")
	}
	lanes.Leave(shortIn("/base/fast"))
	if len(lanes.byPath)+len(lanes.called)+len(lanes.parked) != 0 {
		t.Errorf("left are %v, %v and %v", lanes.byPath, lanes.called, lanes.parked)
	}
}

func TestAVolumeMadeAnewInAnotherFolderLeavesThePlaceOfTheOld(t *testing.T) {
	lanes := newTestLanes(t)
	crowd(t, lanes, "/base/fast", 1)
	lanes.Leave(shortIn("/base/fast"))
	if !lanes.Enter(shortIn("/base/slow"), passOver(concurrentVolumes)) {
		t.Error("it didn't enter the lane of its new folder")
	}
	if !lanes.Enter(shortIn("/base/fast"), passOver(99)) {
		t.Error("the place in the old one wasn't given back")
	}
}

//proves:csi/local-removal
func TestRemovalsLeavePlacesToNewVolumes(t *testing.T) {
	lanes := newTestLanes(t)
	for i := range 10 * concurrentVolumes {
		if entered := lanes.Enter(longIn("/base/fast", "shop"), passOver(i)); entered != (i < longPasses) {
			t.Fatalf("removal %d entered: %v", i, entered)
		}
	}
	for i := range concurrentVolumes - longPasses {
		if !lanes.Enter(shortIn("/base/fast"), passOver(1000+i)) {
			t.Fatalf("new volume %d waits for removals", i)
		}
	}
	lanes.Leave(shortIn("/base/fast"))
	if !lanes.Enter(shortIn("/base/fast"), passOver(2000)) {
		t.Error("a removal took the place of a new volume")
	}
}

// called is who is called when places are given back, one after the other, each of which
// gives its own back.
func called(lanes *Lanes, first Pass, count int) (requests []reconcile.Request) {
	lanes.Leave(first)
	for range count {
		if lanes.queue.Len() == 0 {
			return requests
		}
		request, _ := lanes.queue.Get()
		lanes.queue.Done(request)
		requests = append(requests, request)
		lanes.Drop(request)
	}
	return requests
}

func TestNamespacesHaveTurnsWhoeverHasMoreVolumes(t *testing.T) {
	lanes := newTestLanes(t)
	many, few := longIn("/base/fast", "many"), longIn("/base/fast", "few")
	for i := range longPasses + 6 {
		lanes.Enter(many, passOver(i))
	}
	for i := range 2 {
		lanes.Enter(few, passOver(100+i))
	}
	next := longPasses
	want := []reconcile.Request{passOver(next), passOver(100), passOver(next + 1), passOver(101), passOver(next + 2), passOver(next + 3)}
	if got := called(lanes, many, len(want)); !slices.Equal(got, want) {
		t.Errorf("called were %v", got)
	}
}

func TestARemovalThatGaveItsPlaceBackWaitsBehindTheOthers(t *testing.T) {
	lanes := newTestLanes(t)
	removal := longIn("/base/fast", "shop")
	for i := range longPasses + 2 {
		lanes.Enter(removal, passOver(i))
	}
	lanes.Leave(removal)
	if lanes.Enter(removal, passOver(0)) {
		t.Fatal("it overtook those who waited")
	}
	next := longPasses
	if got := called(lanes, removal, 3); !slices.Equal(got, []reconcile.Request{passOver(next), passOver(next + 1), passOver(0)}) {
		t.Errorf("called were %v", got)
	}
}

func TestRemovalsAndOthersTakeTurnsWhereBothWait(t *testing.T) {
	lanes := newTestLanes(t)
	crowd(t, lanes, "/base/fast", 2)
	for i := range 2 {
		lanes.Enter(longIn("/base/fast", "shop"), passOver(100+i))
	}
	next := concurrentVolumes
	want := []reconcile.Request{passOver(next), passOver(100), passOver(next + 1), passOver(101)}
	if got := called(lanes, shortIn("/base/fast"), len(want)); !slices.Equal(got, want) {
		t.Errorf("called were %v", got)
	}
}

func TestAVolumeThatWasDeletedWhileItWaitedTakesAPlaceForRemovals(t *testing.T) {
	lanes := newTestLanes(t)
	crowd(t, lanes, "/base/fast", 1)
	lanes.Leave(shortIn("/base/fast"))
	if !lanes.Enter(longIn("/base/fast", "shop"), passOver(concurrentVolumes)) {
		t.Fatal("it got no place")
	}
	if lane := lanes.byPath["/base/fast"]; lane.busy != concurrentVolumes || lane.long != 1 {
		t.Errorf("%d places are taken, %d by removals", lane.busy, lane.long)
	}
}
