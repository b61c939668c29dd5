package operations

import (
	"context"
	"errors"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/stowage-dev/stowage/internal/nodemanager/nodetest"
)

func TestWhatEndedAfterAViewIsNotDoneAgainThroughIt(t *testing.T) {
	for name, test := range map[string]struct {
		ran    error
		next   Kind
		does   bool
		failed bool
	}{
		"a mount that succeeded":               {next: Mounting},
		"an unmount of what was mounted since": {next: Unmounting, does: true},
		"a mount that failed has its backoff":  {ran: errors.New("broken"), next: Mounting, failed: true},
	} {
		t.Run(name, func(t *testing.T) {
			operations, hangs := New(clocktesting.NewFakeClock(time.Now()), nil), make(nodetest.Gate)
			operations.Do(t.Context(), Task{Kind: Mounting, Dir: "dir", Pod: nodetest.SomePod}, hangs.Work)
			earlier := operations.View(nodetest.SomePod)
			hangs <- test.ran
			operations.Wait()

			does := false
			work := func(context.Context) error { does = true; return nil }
			outcome := earlier.Do(t.Context(), Task{Kind: test.next, Dir: "dir", Pod: nodetest.SomePod}, work)
			operations.Wait()

			if does != test.does || outcome.Running == test.failed || (outcome.Err != nil) != test.failed {
				t.Errorf("got %+v, and it was done: %t", outcome, does)
			}
		})
	}
}

func TestALaterViewDoesAgainWhatEndedBefore(t *testing.T) {
	operations, done := New(clocktesting.NewFakeClock(time.Now()), nil), 0
	for range 2 {
		operations.View(nodetest.SomePod).Do(t.Context(), Task{Kind: Mounting, Dir: "dir", Pod: nodetest.SomePod}, func(context.Context) error { done++; return nil })
		operations.Wait()
	}
	if done != 2 {
		t.Errorf("it was done %d times", done)
	}
}
