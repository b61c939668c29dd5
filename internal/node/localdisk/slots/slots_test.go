package slots

import (
	"fmt"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func newTestSlots(t *testing.T) *Slots {
	t.Helper()
	slots := New()
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	t.Cleanup(queue.ShutDown)
	if err := slots.Start(t.Context(), queue); err != nil {
		t.Fatal(err)
	}
	return slots
}

func requestOf(i int) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Name: fmt.Sprintf("pvc-%d", i)}}
}

func shortIn(path string) Work { return Work{Path: path} }

func longIn(path, namespace string) Work { return Work{Path: path, Namespace: namespace, Long: true} }

// crowd takes all slots of a folder, and parks further requests.
func crowd(t *testing.T, slots *Slots, path string, parked int) {
	t.Helper()
	for i := range slotsOfFolder + parked {
		if acquired := slots.TryAcquire(shortIn(path), requestOf(i)); acquired != (i < slotsOfFolder) {
			t.Fatalf("request %d got a slot: %v", i, acquired)
		}
	}
}

func TestAFolderWithoutFreeSlotsDelaysNoOther(t *testing.T) {
	slots := newTestSlots(t)
	crowd(t, slots, "/base/hung", 10)
	if !slots.TryAcquire(shortIn("/base/well"), requestOf(100)) {
		t.Error("a volume of another folder was parked")
	}
}

func TestParkedRequestsAreQueuedInOrderWithAReservedSlot(t *testing.T) {
	slots := newTestSlots(t)
	crowd(t, slots, "/base/fast", 2)
	slots.Release(shortIn("/base/fast"))
	if queued, _ := slots.queue.Get(); queued != requestOf(slotsOfFolder) {
		t.Errorf("%v was queued", queued)
	}
	if slots.TryAcquire(shortIn("/base/fast"), requestOf(50)) {
		t.Error("another request took the reserved slot")
	}
	if !slots.TryAcquire(shortIn("/base/fast"), requestOf(slotsOfFolder)) {
		t.Error("the queued request didn't find its slot")
	}
}

func TestTheReservedSlotOfAVolumeThatIsGoneGoesToTheNext(t *testing.T) {
	slots := newTestSlots(t)
	crowd(t, slots, "/base/fast", 2)
	slots.Release(shortIn("/base/fast"))
	slots.Forget(requestOf(slotsOfFolder))
	if !slots.TryAcquire(shortIn("/base/fast"), requestOf(slotsOfFolder+1)) {
		t.Error("the next request didn't get the slot")
	}
}

func TestAFolderWithoutWorkTakesNoMemory(t *testing.T) {
	slots := newTestSlots(t)
	crowd(t, slots, "/base/fast", 1)
	for range slotsOfFolder {
		slots.Release(shortIn("/base/fast"))
	}
	if !slots.TryAcquire(shortIn("/base/fast"), requestOf(slotsOfFolder)) {
		t.Fatal("the queued request didn't find its slot")
	}
	slots.Release(shortIn("/base/fast"))
	if len(slots.folders)+len(slots.reserved)+len(slots.parked) != 0 {
		t.Errorf("left are %v, %v and %v", slots.folders, slots.reserved, slots.parked)
	}
}

func TestAVolumeMadeAgainInAnotherFolderReleasesItsOldSlot(t *testing.T) {
	slots := newTestSlots(t)
	crowd(t, slots, "/base/fast", 1)
	slots.Release(shortIn("/base/fast"))
	if !slots.TryAcquire(shortIn("/base/slow"), requestOf(slotsOfFolder)) {
		t.Error("it got no slot of its new folder")
	}
	if !slots.TryAcquire(shortIn("/base/fast"), requestOf(99)) {
		t.Error("the slot of the old folder wasn't released")
	}
}

//proves:csi/local-removal
func TestRemovalsLeaveSlotsToNewVolumes(t *testing.T) {
	slots := newTestSlots(t)
	for i := range 10 * slotsOfFolder {
		if acquired := slots.TryAcquire(longIn("/base/fast", "shop"), requestOf(i)); acquired != (i < slotsForLong) {
			t.Fatalf("removal %d got a slot: %v", i, acquired)
		}
	}
	for i := range slotsOfFolder - slotsForLong {
		if !slots.TryAcquire(shortIn("/base/fast"), requestOf(1000+i)) {
			t.Fatalf("new volume %d waits for removals", i)
		}
	}
	slots.Release(shortIn("/base/fast"))
	if !slots.TryAcquire(shortIn("/base/fast"), requestOf(2000)) {
		t.Error("a removal took the slot of a new volume")
	}
}

// queued releases a slot, and then that of each request that is queued for it.
func queued(slots *Slots, first Work, count int) (requests []reconcile.Request) {
	slots.Release(first)
	for range count {
		if slots.queue.Len() == 0 {
			return requests
		}
		request, _ := slots.queue.Get()
		slots.queue.Done(request)
		requests = append(requests, request)
		slots.Forget(request)
	}
	return requests
}

func TestNamespacesAlternateHoweverManyVolumesTheyHave(t *testing.T) {
	slots := newTestSlots(t)
	many, few := longIn("/base/fast", "many"), longIn("/base/fast", "few")
	for i := range slotsForLong + 6 {
		slots.TryAcquire(many, requestOf(i))
	}
	for i := range 2 {
		slots.TryAcquire(few, requestOf(100+i))
	}
	next := slotsForLong
	want := []reconcile.Request{requestOf(next), requestOf(100), requestOf(next + 1), requestOf(101), requestOf(next + 2), requestOf(next + 3)}
	if got := queued(slots, many, len(want)); !slices.Equal(got, want) {
		t.Errorf("queued were %v", got)
	}
}

func TestARemovalThatReleasedItsSlotWaitsBehindTheOthers(t *testing.T) {
	slots := newTestSlots(t)
	removal := longIn("/base/fast", "shop")
	for i := range slotsForLong + 2 {
		slots.TryAcquire(removal, requestOf(i))
	}
	slots.Release(removal)
	if slots.TryAcquire(removal, requestOf(0)) {
		t.Fatal("it overtook parked requests")
	}
	next := slotsForLong
	if got := queued(slots, removal, 3); !slices.Equal(got, []reconcile.Request{requestOf(next), requestOf(next + 1), requestOf(0)}) {
		t.Errorf("queued were %v", got)
	}
}

func TestRemovalsAndOthersAlternateWhereBothWait(t *testing.T) {
	slots := newTestSlots(t)
	crowd(t, slots, "/base/fast", 2)
	for i := range 2 {
		slots.TryAcquire(longIn("/base/fast", "shop"), requestOf(100+i))
	}
	next := slotsOfFolder
	want := []reconcile.Request{requestOf(next), requestOf(100), requestOf(next + 1), requestOf(101)}
	if got := queued(slots, shortIn("/base/fast"), len(want)); !slices.Equal(got, want) {
		t.Errorf("queued were %v", got)
	}
}

func TestAVolumeThatWasDeletedWhileItWaitedTakesASlotForRemovals(t *testing.T) {
	slots := newTestSlots(t)
	crowd(t, slots, "/base/fast", 1)
	slots.Release(shortIn("/base/fast"))
	if !slots.TryAcquire(longIn("/base/fast", "shop"), requestOf(slotsOfFolder)) {
		t.Fatal("it got no slot")
	}
	if of := slots.folders["/base/fast"]; of.busy != slotsOfFolder || of.long != 1 {
		t.Errorf("%d slots are taken, %d by removals", of.busy, of.long)
	}
}
