package operations

import (
	"context"
	"errors"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/stowage-dev/stowage/internal/nodemanager/nodetest"
)

func TestACancelledOperationKeepsItsVolumeUntilItIsOver(t *testing.T) {
	for _, kind := range []Kind{Mounting, Refreshing} {
		t.Run(kind.String(), func(t *testing.T) {
			operations := New(clocktesting.NewFakeClock(time.Now()), nil)
			cancelled, gone := make(chan struct{}), make(nodetest.Gate)
			operations.Do(t.Context(), Task{Kind: kind, Dir: "dir", Pod: nodetest.SomePod}, func(ctx context.Context) error {
				<-ctx.Done()
				close(cancelled)
				return errors.Join(ctx.Err(), <-gone)
			})
			unmount := func(t *testing.T, work func(context.Context) error) Outcome {
				t.Helper()
				return operations.Do(t.Context(), Task{Kind: Unmounting, Dir: "dir", Pod: nodetest.SomePod}, work)
			}

			outcome := unmount(t, func(context.Context) error { t.Error("it was unmounted while it was mounted"); return nil })
			<-cancelled
			if !outcome.Running || !operations.IsRunningAt("dir") {
				t.Errorf("its process isn't gone, and it has %+v", outcome)
			}
			gone <- nil
			operations.Wait()

			unmounted := false
			unmount(t, func(context.Context) error { unmounted = true; return nil })
			operations.Wait()
			if !unmounted {
				t.Error("it wasn't unmounted afterwards")
			}
		})
	}
}

func TestACancelledMountHasNotFailed(t *testing.T) {
	operations := New(clocktesting.NewFakeClock(time.Now()), nil)
	task := Task{Kind: Mounting, Dir: "dir", Pod: nodetest.SomePod}
	operations.Do(t.Context(), task, func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
	operations.Do(t.Context(), Task{Kind: Mounting, Dir: "another's", Pod: "pod-2"}, func(ctx context.Context) error { return ctx.Err() })
	operations.Cancel(nodetest.SomePod)
	operations.Wait()
	if outcome := operations.Do(t.Context(), task, func(context.Context) error { return nil }); !outcome.Running {
		t.Errorf("a pod that needs it after all has %+v", outcome)
	}
	operations.Wait()
}

func TestAnUnmountIsNeverCancelled(t *testing.T) {
	operations := New(clocktesting.NewFakeClock(time.Now()), nil)
	hangs := make(nodetest.Gate)
	operations.Do(t.Context(), Task{Kind: Unmounting, Dir: "dir", Pod: nodetest.SomePod}, func(ctx context.Context) error {
		err := <-hangs
		if ctx.Err() != nil {
			t.Error("it was cancelled")
		}
		return err
	})
	operations.Cancel(nodetest.SomePod)
	operations.Do(t.Context(), Task{Kind: Mounting, Dir: "dir", Pod: nodetest.SomePod}, func(context.Context) error {
		t.Error("it was mounted while the unmount ran")
		return nil
	})
	hangs <- nil
	operations.Wait()
}
