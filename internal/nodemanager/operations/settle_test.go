package operations

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/stowage-dev/stowage/internal/nodemanager/nodetest"
)

// look is a View of a pod whose calls of OnEnd's function are noted.
type look struct {
	View
	woken chan types.UID
}

func newLook(t *testing.T) look {
	t.Helper()
	operations, woken := New(clocktesting.NewFakeClock(time.Now()), nil), make(chan types.UID, 10)
	operations.OnEnd(func(pod types.UID) { woken <- pod })
	return look{operations.View(nodetest.SomePod), woken}
}

func (l look) mount(t *testing.T, dir string, work func(context.Context) error) {
	t.Helper()
	if outcome := l.Do(t.Context(), Task{Kind: Mounting, Dir: dir, Pod: nodetest.SomePod}, work); !outcome.Running {
		t.Fatalf("got %+v", outcome)
	}
}

func (l look) mustNotWake(t *testing.T) {
	t.Helper()
	if len(l.woken) > 0 {
		t.Error("its pod is reconciled once more")
	}
}

func TestALookSeesTheEndsOfWhatItBegan(t *testing.T) {
	l := newLook(t)
	for _, dir := range []string{"one", "two"} {
		l.mount(t, dir, func(context.Context) error { return nil })
	}
	l.operations.Wait()
	if !l.Settle(t.Context()) {
		t.Error("it saw no end")
	}
	l.Close()
	l.mustNotWake(t)
}

func TestALookWaitsUntilTheLastHasEnded(t *testing.T) {
	l, held := newLook(t), make(nodetest.Gate)
	l.mount(t, "one", held.Work)
	l.mount(t, "two", held.Work)
	settled := l.settled()
	for range 2 {
		select {
		case <-settled:
			t.Error("it waits no more, and one runs")
		case held <- nil:
		}
	}
	<-settled
}

func TestALookWaitsOnlyAMomentForWhatHangs(t *testing.T) {
	l, hangs := newLook(t), make(nodetest.Gate)
	l.mount(t, "hangs", hangs.Work)
	if l.Settle(t.Context()) {
		t.Error("it saw an end")
	}
	l.Close()
	l.mustNotWake(t)

	hangs <- nil

	if pod := <-l.woken; pod != nodetest.SomePod {
		t.Errorf("pod %s is reconciled", pod)
	}
}

func TestALookSeesTheEndOfOneBesideAnotherThatHangs(t *testing.T) {
	l, hangs := newLook(t), make(nodetest.Gate)
	l.mount(t, "hangs", hangs.Work)
	l.mount(t, "quick", func(context.Context) error { return nil })
	nodetest.Eventually(t, "one has ended", func() bool { return !l.operations.IsRunningAt("quick") })
	if !l.Settle(t.Context()) {
		t.Error("it saw no end")
	}
	hangs <- nil
	<-l.woken
}

func TestALookWaitsForNothingThatRanBefore(t *testing.T) {
	l, hangs := newLook(t), make(nodetest.Gate)
	l.mount(t, "hangs", hangs.Work)
	l.Close()
	later := l.operations.View(nodetest.SomePod)
	later.Do(t.Context(), Task{Kind: Mounting, Dir: "hangs", Pod: nodetest.SomePod}, hangs.Work)

	select {
	case <-later.settled():
	default:
		t.Error("it waits for what it didn't begin")
	}

	hangs <- nil
	<-l.woken
}

func TestThePodIsReconciledOnceForEndsThatALookDoesNotSee(t *testing.T) {
	l := newLook(t)
	for _, dir := range []string{"one", "two"} {
		l.mount(t, dir, func(context.Context) error { return nil })
	}
	l.operations.Wait()
	l.mustNotWake(t)

	l.Close()

	if pod := <-l.woken; pod != nodetest.SomePod || len(l.woken) > 0 {
		t.Errorf("pod %s is reconciled, and %d more", pod, len(l.woken))
	}
}

func TestALookEndsWithItsPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, hangs := newLook(t), make(nodetest.Gate)
		l.mount(t, "hangs", hangs.Work)
		ctx, stop := context.WithCancel(t.Context())
		stop()
		if began := time.Now(); l.Settle(ctx) || time.Since(began) > 0 {
			t.Error("it waited, or saw an end")
		}
		hangs <- nil
		<-l.woken
	})
}
