package wake

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// fakeQueue keeps, as queues do, the earlier of two times of an object, and notes when each
// is due, in seconds from the start.
type fakeQueue struct {
	workqueue.TypedDelayingInterface[reconcile.Request]
	clock *clocktesting.FakeClock
	now   int
	due   map[string]int
	woken []string
	lists int
}

func newFakeQueue() (*fakeQueue, *Rounds) {
	clock := clocktesting.NewFakeClock(time.Unix(0, 0))
	return &fakeQueue{clock: clock, due: map[string]int{}}, &Rounds{Clock: clock, Each: time.Second, Rest: 5 * time.Second}
}

func (q *fakeQueue) AddAfter(object reconcile.Request, delay time.Duration) {
	at := q.now + int(delay.Seconds())
	if due, ok := q.due[object.Name]; !ok || at < due {
		q.due[object.Name] = at
	}
	q.wake()
}

// wake takes the objects out that are due.
func (q *fakeQueue) wake() {
	for name, at := range q.due {
		if at <= q.now {
			q.woken = append(q.woken, fmt.Sprintf("%d:%s", q.now, name))
			delete(q.due, name)
		}
	}
	slices.Sort(q.woken)
}

// objects lists some that wait, named a, b, c and so on.
func (q *fakeQueue) objects(count int) func() []reconcile.Request { return q.objectsFrom('a', count) }

func (q *fakeQueue) objectsFrom(first rune, count int) func() []reconcile.Request {
	return func() []reconcile.Request {
		q.lists++
		list := make([]reconcile.Request, count)
		for i := range list {
			list[i] = reconcile.Request{NamespacedName: types.NamespacedName{Name: string(first + rune(i))}}
		}
		return list
	}
}

func (q *fakeQueue) pass(seconds int) {
	for range seconds {
		q.now++
		q.wake()
		q.clock.Step(time.Second)
	}
}

// expect compares which objects were woken, and when, with those that should be.
func (q *fakeQueue) expect(t *testing.T, woken ...string) {
	t.Helper()
	if !slices.Equal(q.woken, woken) {
		t.Fatalf("objects are woken at %v, not at %v", q.woken, woken)
	}
}

func TestTheFirstChangeWakesTheFirstObjectAtOnce(t *testing.T) {
	queue, rounds := newFakeQueue()
	rounds.Wake("disks", queue, queue.objects(3))
	queue.expect(t, "0:a")
	queue.pass(9)
	queue.expect(t, "0:a", "1:b", "2:c")
}

func TestAChangeDuringARoundStartsAnotherWhenItIsOver(t *testing.T) {
	queue, rounds := newFakeQueue()
	rounds.Wake("disks", queue, queue.objects(7))
	queue.pass(1)
	rounds.Wake("disks", queue, queue.objects(2))
	queue.pass(8)
	queue.expect(t, "0:a", "1:b", "2:c", "3:d", "4:e", "5:f", "6:g", "7:a", "8:b")
}

func TestARoundThatHasYetToBeginCoversAllChangesBefore(t *testing.T) {
	queue, rounds := newFakeQueue()
	for range 100 {
		rounds.Wake("disks", queue, queue.objects(1))
	}
	queue.pass(6)
	queue.expect(t, "0:a", "5:a")
	if queue.lists != 2 {
		t.Errorf("objects were listed %d times", queue.lists)
	}
}

func TestAnObjectIsWokenAfterAChangeThatCameAfterItsTurn(t *testing.T) {
	queue, rounds := newFakeQueue()
	rounds.Wake("disks", queue, queue.objects(3))
	rounds.Wake("disks", queue, queue.objects(3))
	queue.pass(3)
	rounds.Wake("disks", queue, queue.objects(3))
	queue.pass(6)
	queue.expect(t, "0:a", "1:b", "2:c", "5:a", "6:b", "7:c")
}

func TestALaterChangeFindsNoRoundUnderWay(t *testing.T) {
	queue, rounds := newFakeQueue()
	rounds.Wake("disks", queue, queue.objects(1))
	queue.pass(7)
	rounds.Wake("disks", queue, queue.objects(1))
	queue.expect(t, "0:a", "7:a")
}

func TestGroupsDoNotWaitForEachOther(t *testing.T) {
	queue, rounds := newFakeQueue()
	rounds.Wake("disks", queue, queue.objects(3))
	rounds.Wake("others", queue, queue.objectsFrom('x', 2))
	queue.pass(9)
	queue.expect(t, "0:a", "0:x", "1:b", "1:y", "2:c")
}

func TestAChangeThatConcernsNoObjectStartsNoRound(t *testing.T) {
	queue, rounds := newFakeQueue()
	rounds.Wake("disks", queue, queue.objects(0))
	rounds.Wake("disks", queue, queue.objects(1))
	queue.expect(t, "0:a")
}
