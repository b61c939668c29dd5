package wake

import (
	"strconv"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// spy notes when objects are to be reconciled, in seconds from the start.
type spy struct {
	workqueue.TypedDelayingInterface[reconcile.Request]
	clock   *clocktesting.FakePassiveClock
	start   time.Time
	seconds []float64
	lists   int
}

func newSpy() (*spy, *Rounds) {
	start := time.Unix(0, 0)
	clock := clocktesting.NewFakePassiveClock(start)
	return &spy{clock: clock, start: start}, &Rounds{Clock: clock, Each: time.Second, Rest: 5 * time.Second}
}

func (s *spy) AddAfter(_ reconcile.Request, delay time.Duration) {
	s.seconds = append(s.seconds, s.clock.Now().Add(delay).Sub(s.start).Seconds())
}

// objects lists some that wait.
func (s *spy) objects(count int) func() []reconcile.Request {
	return func() []reconcile.Request {
		s.lists++
		list := make([]reconcile.Request, count)
		for i := range list {
			list[i] = reconcile.Request{NamespacedName: types.NamespacedName{Name: strconv.Itoa(i)}}
		}
		return list
	}
}

func (s *spy) pass(seconds int) {
	s.clock.SetTime(s.clock.Now().Add(time.Duration(seconds) * time.Second))
}

func (s *spy) expect(t *testing.T, seconds ...float64) {
	t.Helper()
	if len(seconds) != len(s.seconds) {
		t.Fatalf("objects are woken after %v seconds, not %v", s.seconds, seconds)
	}
	for i, want := range seconds {
		if s.seconds[i] != want {
			t.Fatalf("objects are woken after %v seconds, not %v", s.seconds, seconds)
		}
	}
}

func TestTheFirstChangeWakesTheFirstObjectAtOnce(t *testing.T) {
	queue, rounds := newSpy()
	rounds.Wake("disks", queue, queue.objects(3))
	queue.expect(t, 0, 1, 2)
}

func TestAChangeDuringARoundStartsAnotherWhenItIsOver(t *testing.T) {
	queue, rounds := newSpy()
	rounds.Wake("disks", queue, queue.objects(7))
	queue.pass(1)
	rounds.Wake("disks", queue, queue.objects(2))
	queue.expect(t, 0, 1, 2, 3, 4, 5, 6, 7, 8)
}

func TestARoundThatHasYetToBeginCoversAllChangesBefore(t *testing.T) {
	queue, rounds := newSpy()
	for range 100 {
		rounds.Wake("disks", queue, queue.objects(1))
	}
	queue.expect(t, 0, 5)
	if queue.lists != 2 {
		t.Errorf("objects were listed %d times", queue.lists)
	}
	queue.pass(6)
	rounds.Wake("disks", queue, queue.objects(1))
	queue.expect(t, 0, 5, 10)
}

func TestALaterChangeFindsNoRoundUnderWay(t *testing.T) {
	queue, rounds := newSpy()
	rounds.Wake("disks", queue, queue.objects(1))
	queue.pass(5)
	rounds.Wake("disks", queue, queue.objects(1))
	queue.expect(t, 0, 5)
}

func TestGroupsDoNotWaitForEachOther(t *testing.T) {
	queue, rounds := newSpy()
	rounds.Wake("disks", queue, queue.objects(3))
	rounds.Wake("others", queue, queue.objects(2))
	queue.expect(t, 0, 1, 2, 0, 1)
}

func TestAChangeThatConcernsNoObjectStartsNoRound(t *testing.T) {
	queue, rounds := newSpy()
	rounds.Wake("disks", queue, queue.objects(0))
	rounds.Wake("disks", queue, queue.objects(1))
	queue.expect(t, 0)
}
