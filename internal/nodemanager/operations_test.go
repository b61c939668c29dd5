package nodemanager

import (
	"context"
	"errors"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
)

func TestOneVolumeHasOneOperationAndAnotherDoesNotWaitForIt(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Now())
	operations := NewOperations(clock, nil)
	hangs, quick := make(gate), make(gate)
	if outcome := operations.Do(t.Context(), Task{Kind: Mounting, Dir: "hangs", Pod: somePod}, hangs.work); !outcome.Running {
		t.Fatalf("got %+v", outcome)
	}
	clock.Step(time.Minute)
	second := operations.Do(t.Context(), Task{Kind: Mounting, Dir: "hangs", Pod: somePod}, func(context.Context) error {
		t.Error("a second operation was started")
		return nil
	})
	if !second.Running || second.RunningFor != time.Minute {
		t.Errorf("got %+v", second)
	}
	ended := make(chan types.UID)
	operations.OnEnd(func(pod types.UID) { ended <- pod })
	operations.Do(t.Context(), Task{Kind: Mounting, Dir: "quick", Pod: "pod-2"}, quick.work)
	quick <- nil
	if pod := <-ended; pod != "pod-2" {
		t.Errorf("%s was told", pod)
	}
	if !operations.IsRunningAt("hangs") || operations.IsRunningAt("another") {
		t.Error("it isn't known where something runs")
	}
	if !operations.IsRunning(somePod) || operations.IsRunning("pod-2") {
		t.Error("the wrong pod has something running")
	}
	hangs <- nil
	<-ended
	if operations.IsRunning(somePod) {
		t.Error("it still counts as running")
	}
}

func TestAFailedOperationBacksOffAndASuccessForgetsIt(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Now())
	operations := NewOperations(clock, nil)
	ended := make(chan types.UID)
	operations.OnEnd(func(pod types.UID) { ended <- pod })
	broken := errors.New("broken")
	attempt := func(result error) Outcome {
		outcome := operations.Do(t.Context(), Task{Kind: Mounting, Dir: "dir", Pod: somePod}, func(context.Context) error { return result })
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
		clock.Step(lastRetry)
	}
	attempt(broken)
	if outcome := attempt(nil); outcome.RetryAfter != lastRetry {
		t.Errorf("the longest backoff is %s", outcome.RetryAfter)
	}
	clock.Step(lastRetry)
	attempt(nil)
	attempt(broken)
	if outcome := attempt(nil); outcome.RetryAfter != firstRetry {
		t.Errorf("after a success the backoff begins with %s", outcome.RetryAfter)
	}
}

func TestAFailedMountNeitherHoldsUpTheUnmountNorSpeaksForIt(t *testing.T) {
	operations := NewOperations(clocktesting.NewFakeClock(time.Now()), nil)
	broken := func(context.Context) error { return errors.New("broken") }
	operations.Do(t.Context(), Task{Kind: Mounting, Dir: "dir", Pod: somePod}, broken)
	operations.Wait()

	unmounted := false
	outcome := operations.Do(t.Context(), Task{Kind: Unmounting, Dir: "dir", Pod: somePod}, func(context.Context) error {
		unmounted = true
		return nil
	})
	operations.Wait()
	if outcome.Err != nil || !unmounted {
		t.Errorf("got %+v", outcome)
	}
}

func TestAMountAndAnUnmountOfOneVolumeNeverRunAtOnce(t *testing.T) {
	operations := NewOperations(clocktesting.NewFakeClock(time.Now()), nil)
	hangs := make(gate)
	operations.Do(t.Context(), Task{Kind: Mounting, Dir: "dir", Pod: somePod}, hangs.work)
	outcome := operations.Do(t.Context(), Task{Kind: Unmounting, Dir: "dir", Pod: somePod}, func(context.Context) error {
		t.Error("it was unmounted meanwhile")
		return nil
	})
	if !outcome.Running {
		t.Errorf("got %+v", outcome)
	}
	hangs <- nil
	operations.Wait()
}

func TestNothingIsKeptOfAPodThatIsGone(t *testing.T) {
	operations := NewOperations(clocktesting.NewFakeClock(time.Now()), nil)
	broken, hangs := func(context.Context) error { return errors.New("broken") }, make(gate)
	operations.Do(t.Context(), Task{Kind: Mounting, Dir: "dir", Pod: somePod}, broken)
	operations.Do(t.Context(), Task{Kind: Mounting, Dir: "another pod's", Pod: "pod-2"}, broken)
	operations.Wait()
	operations.Do(t.Context(), Task{Kind: Mounting, Dir: "hangs", Pod: somePod}, hangs.work)

	operations.Forget(somePod)

	if !operations.IsRunning(somePod) || len(operations.states) != 2 {
		t.Errorf("what is left: %v", operations.states)
	}
	hangs <- nil
	operations.Wait()
}

func TestAShutdownWaitsForWhatRunsAndDoesNotCancelIt(t *testing.T) {
	operations := NewOperations(clocktesting.NewFakeClock(time.Now()), nil)
	ctx, cancel := context.WithCancel(t.Context())
	started, finish := make(chan struct{}), make(chan struct{})
	operations.Do(ctx, Task{Kind: Mounting, Dir: "dir", Pod: somePod}, func(ctx context.Context) error {
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
