package operations

import (
	"context"
	"errors"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/stowage-dev/stowage/internal/nodemanager/nodetest"
)

func TestOneVolumeHasOneOperationAndAnotherDoesNotWaitForIt(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Now())
	operations := New(clock, nil)
	hangs, quick := make(nodetest.Gate), make(nodetest.Gate)
	if outcome := operations.Do(t.Context(), Task{Kind: Mounting, Dir: "hangs", Pod: nodetest.SomePod}, hangs.Work); !outcome.Running {
		t.Fatalf("got %+v", outcome)
	}
	clock.Step(time.Minute)
	second := operations.Do(t.Context(), Task{Kind: Mounting, Dir: "hangs", Pod: nodetest.SomePod}, func(context.Context) error {
		t.Error("a second operation was started")
		return nil
	})
	if !second.Running || second.RunningFor != time.Minute {
		t.Errorf("got %+v", second)
	}
	ended := make(chan types.UID)
	operations.OnEnd(func(pod types.UID) { ended <- pod })
	operations.Do(t.Context(), Task{Kind: Mounting, Dir: "quick", Pod: "pod-2"}, quick.Work)
	quick <- nil
	if pod := <-ended; pod != "pod-2" {
		t.Errorf("it was called with %s", pod)
	}
	if !operations.IsRunningAt("hangs") || operations.IsRunningAt("another") {
		t.Error("it isn't known where something runs")
	}
	if !operations.View(nodetest.SomePod).IsRunning() || operations.View("pod-2").IsRunning() {
		t.Error("the wrong pod has something running")
	}
	hangs <- nil
	<-ended
	if operations.View(nodetest.SomePod).IsRunning() {
		t.Error("it still counts as running")
	}
}

func TestAFailedOperationBacksOffAndASuccessForgetsIt(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Now())
	operations := New(clock, nil)
	ended := make(chan types.UID)
	operations.OnEnd(func(pod types.UID) { ended <- pod })
	broken := errors.New("broken")
	attempt := func(result error) Outcome {
		outcome := operations.Do(t.Context(), Task{Kind: Mounting, Dir: "dir", Pod: nodetest.SomePod}, func(context.Context) error { return result })
		if outcome.Running {
			<-ended
		}
		return outcome
	}
	for _, backoff := range []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second, 4 * time.Second} {
		attempt(broken)
		if outcome := attempt(nil); !errors.Is(outcome.Err, broken) || outcome.RetryAfter != backoff {
			t.Errorf("got %+v, want a retry after %s", outcome, backoff)
		}
		clock.Step(backoff)
	}
	for range 20 {
		attempt(broken)
		clock.Step(LastRetry)
	}
	attempt(broken)
	if outcome := attempt(nil); outcome.RetryAfter != LastRetry {
		t.Errorf("the longest backoff is %s", outcome.RetryAfter)
	}
	clock.Step(LastRetry)
	attempt(nil)
	attempt(broken)
	if outcome := attempt(nil); outcome.RetryAfter != firstRetry {
		t.Errorf("after a success the backoff begins with %s", outcome.RetryAfter)
	}
}

func TestAFailedMountNeitherHoldsUpTheUnmountNorSpeaksForIt(t *testing.T) {
	operations := New(clocktesting.NewFakeClock(time.Now()), nil)
	broken := func(context.Context) error { return errors.New("broken") }
	operations.Do(t.Context(), Task{Kind: Mounting, Dir: "dir", Pod: nodetest.SomePod}, broken)
	operations.Wait()

	unmounted := false
	outcome := operations.Do(t.Context(), Task{Kind: Unmounting, Dir: "dir", Pod: nodetest.SomePod}, func(context.Context) error {
		unmounted = true
		return nil
	})
	operations.Wait()
	if outcome.Err != nil || !unmounted {
		t.Errorf("got %+v", outcome)
	}
}

func TestAMountAndAnUnmountOfOneVolumeNeverRunAtOnce(t *testing.T) {
	operations := New(clocktesting.NewFakeClock(time.Now()), nil)
	hangs := make(nodetest.Gate)
	operations.Do(t.Context(), Task{Kind: Mounting, Dir: "dir", Pod: nodetest.SomePod}, hangs.Work)
	outcome := operations.Do(t.Context(), Task{Kind: Unmounting, Dir: "dir", Pod: nodetest.SomePod}, func(context.Context) error {
		t.Error("it was unmounted while the mount ran")
		return nil
	})
	if !outcome.Running {
		t.Errorf("got %+v", outcome)
	}
	hangs <- nil
	operations.Wait()
}

func TestNothingIsKeptOfAPodThatIsGone(t *testing.T) {
	operations := New(clocktesting.NewFakeClock(time.Now()), nil)
	broken, hangs := func(context.Context) error { return errors.New("broken") }, make(nodetest.Gate)
	operations.Do(t.Context(), Task{Kind: Mounting, Dir: "dir", Pod: nodetest.SomePod}, broken)
	operations.Do(t.Context(), Task{Kind: Mounting, Dir: "another pod's", Pod: "pod-2"}, broken)
	operations.Wait()
	operations.Do(t.Context(), Task{Kind: Mounting, Dir: "hangs", Pod: nodetest.SomePod}, hangs.Work)

	operations.Forget(nodetest.SomePod)

	if !operations.View(nodetest.SomePod).IsRunning() || len(operations.states) != 2 {
		t.Errorf("what is left: %v", operations.states)
	}
	hangs <- nil
	operations.Wait()
}

func TestAShutdownWaitsForWhatRunsAndDoesNotCancelIt(t *testing.T) {
	operations := New(clocktesting.NewFakeClock(time.Now()), nil)
	ctx, cancel := context.WithCancel(t.Context())
	started, finish := make(chan struct{}), make(chan struct{})
	operations.Do(ctx, Task{Kind: Mounting, Dir: "dir", Pod: nodetest.SomePod}, func(ctx context.Context) error {
		close(started)
		<-finish
		if ctx.Err() != nil {
			t.Error("the work was cancelled")
		}
		return nil
	})
	<-started
	cancel()
	waited := make(chan struct{})
	go func() { operations.Wait(); close(waited) }()
	select {
	case <-waited:
		t.Error("it didn't wait")
	default:
	}
	close(finish)
	<-waited
}
