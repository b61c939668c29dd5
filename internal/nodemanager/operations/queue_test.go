package operations

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/stowage-dev/stowage/internal/nodemanager/metrics"
	"github.com/stowage-dev/stowage/internal/nodemanager/nodetest"
)

// crowd is operations of which each hangs until the test lets it proceed.
type crowd struct {
	*Operations
	clock   *clocktesting.FakeClock
	running atomic.Int32
	proceed chan struct{}
}

func newCrowd(t *testing.T, metrics *metrics.Metrics) *crowd {
	t.Helper()
	clock := clocktesting.NewFakeClock(time.Now())
	c := &crowd{Operations: New(clock, metrics), clock: clock, proceed: make(chan struct{})}
	t.Cleanup(func() { close(c.proceed); c.Wait() })
	return c
}

func (c *crowd) work(context.Context) error {
	c.running.Add(1)
	defer c.running.Add(-1)
	<-c.proceed
	return nil
}

// request requests mounts of a type, each of another volume.
func (c *crowd) request(t *testing.T, volumeType string, count int) (last Outcome) {
	t.Helper()
	for i := range count {
		task := Task{Kind: Mounting, Type: volumeType, Dir: fmt.Sprint(volumeType, i), Pod: nodetest.SomePod}
		last = c.Do(t.Context(), task, c.work)
	}
	return last
}

// await waits until so many run.
func (c *crowd) await(t *testing.T, count int) {
	t.Helper()
	nodetest.Eventually(t, fmt.Sprint(count, " operations run"), func() bool { return int(c.running.Load()) == count })
}

func TestOnlySoManyOfATypeBeginAtOnceAndOtherTypesDoNotWaitForThem(t *testing.T) {
	c := newCrowd(t, nil)
	if last := c.request(t, "nfs", Slots+5); !last.Queued {
		t.Errorf("one too many has %+v", last)
	}
	c.await(t, Slots)
	if last := c.request(t, "secret", 1); !last.Running {
		t.Errorf("one of another type has %+v", last)
	}
	c.await(t, Slots+1)

	c.clock.Step(SlotTime / 2)
	if last := c.request(t, "nfs", Slots+5); last.QueuedFor != SlotTime/2 {
		t.Errorf("it has %+v", last)
	}
	for range 6 {
		c.proceed <- struct{}{}
	}
	// Whichever ended, the five queued ones have begun.
	nodetest.Eventually(t, "none is queued", func() bool { return c.request(t, "nfs", Slots+5).Running })
}

func TestALongOperationFreesItsSlotButTheRunningOnesAreBounded(t *testing.T) {
	c := newCrowd(t, nil)
	c.request(t, "nfs", MaxRunning+Slots)
	for running := Slots; running < MaxRunning; running += Slots {
		c.await(t, running)
		c.clock.Step(SlotTime)
	}
	c.await(t, MaxRunning)
	c.clock.Step(SlotTime)
	if last := c.request(t, "nfs", MaxRunning+Slots); !last.Queued {
		t.Errorf("one more than may hang has %+v", last)
	}
	if running := int(c.running.Load()); running != MaxRunning {
		t.Errorf("%d run, and %d may", running, MaxRunning)
	}
}

func TestAQueuedMountIsDroppedByItsUnmount(t *testing.T) {
	c := newCrowd(t, nil)
	c.request(t, "nfs", Slots)
	task := Task{Kind: Mounting, Type: "nfs", Dir: "late", Pod: "pod-2"}
	c.Do(t.Context(), task, func(context.Context) error { t.Error("it was mounted"); return nil })
	if !c.View("pod-2").IsRunning() || !c.IsRunningAt("late") {
		t.Error("a mount that is about to begin isn't known")
	}

	task.Kind = Unmounting
	unmounted := make(chan struct{})
	outcome := c.Do(t.Context(), task, func(context.Context) error { close(unmounted); return nil })

	if !outcome.Queued {
		t.Errorf("it has %+v", outcome)
	}
	c.await(t, Slots)
	c.proceed <- struct{}{}
	<-unmounted
}

func TestAQueuedMountIsDroppedWithItsPod(t *testing.T) {
	c := newCrowd(t, nil)
	c.request(t, "nfs", Slots)
	task := Task{Kind: Mounting, Type: "nfs", Dir: "late", Pod: "pod-2"}
	c.Do(t.Context(), task, func(context.Context) error { t.Error("it was mounted"); return nil })

	c.Cancel("pod-2")

	if c.View("pod-2").IsRunning() {
		t.Error("it is still queued")
	}
	if len(c.states) != Slots {
		t.Errorf("%d operations are known", len(c.states))
	}
}

func TestAfterAShutdownNothingBegins(t *testing.T) {
	c := newCrowd(t, nil)
	c.request(t, "nfs", Slots)
	late := Task{Kind: Mounting, Type: "nfs", Dir: "late", Pod: nodetest.SomePod}
	mustNot := func(context.Context) error { t.Error("it was mounted"); return nil }
	c.Do(t.Context(), late, mustNot)
	stopped := make(chan struct{})
	go func() { c.Stop(); close(stopped) }()
	nodetest.Eventually(t, "what waited is dropped", func() bool { return !c.IsRunningAt("late") })
	c.Do(t.Context(), late, mustNot)
	for range Slots {
		c.proceed <- struct{}{}
	}
	<-stopped
}

func TestAVolumeHasOneOperationAtATimeWhateverIsRequestedAtOnce(t *testing.T) {
	const dirs, callers, rounds = 3 * Slots, 8, 400
	operations := New(clock.RealClock{}, nil)
	var busy [dirs]atomic.Int32
	var running, most atomic.Int32
	var calls sync.WaitGroup
	for caller := range callers {
		calls.Go(func() {
			pod := types.UID(fmt.Sprint("pod-", caller))
			for range rounds {
				at := rand.IntN(dirs)
				task := Task{Kind: Kind(rand.IntN(3)), Type: "nfs", Dir: fmt.Sprint(at), Pod: pod}
				operations.Do(t.Context(), task, func(ctx context.Context) error {
					if busy[at].Add(1) > 1 {
						t.Errorf("two things are done to volume %d", at)
					}
					defer busy[at].Add(-1)
					for now := running.Add(1); now > most.Load(); {
						most.Store(now)
					}
					defer running.Add(-1)
					select {
					case <-ctx.Done():
						return ctx.Err()
					case <-time.After(time.Millisecond):
						return nil
					}
				})
				if rand.IntN(4) == 0 {
					operations.Cancel(pod)
				}
			}
		})
	}
	calls.Wait()
	operations.Wait()
	if at := operations.queues.ofType("nfs"); at.slots != 0 || at.running != 0 || len(at.waiting) != 0 {
		t.Errorf("left in the queue: %+v", at)
	}
	if len(operations.states) != 0 || most.Load() > Slots {
		t.Errorf("%d operations are left, and %d ran at once", len(operations.states), most.Load())
	}
}
