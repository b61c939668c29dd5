// Package operations runs what may take long, such as mounts and unmounts: one at a time for
// each volume directory, each in a goroutine of its own, and a bounded number of each volume
// type. It retries with a backoff. A call never waits for an operation, and the end of the
// program cancels none.
package operations

import (
	"context"
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/stowage-dev/stowage/internal/keyed"
	"github.com/stowage-dev/stowage/internal/nodemanager/metrics"
)

const (
	// firstRetry is how long an operation waits after its first failure. The time doubles with
	// each failure.
	firstRetry = 500 * time.Millisecond
	// LastRetry is the longest that a failed operation waits.
	LastRetry = 2 * time.Minute
)

// Outcome is what is known of the operation of one volume.
type Outcome struct {
	// RunningFor is how long it has been running, if Running.
	Running    bool
	RunningFor time.Duration
	// QueuedFor is how long it has been waiting for its turn, if Queued.
	Queued    bool
	QueuedFor time.Duration
	// Err is how it failed the last time, and RetryAfter when it may run again.
	Err        error
	RetryAfter time.Duration
}

// Operations runs what may take long, each in a goroutine of its own: at most
// one per volume directory at a time, only so many of a volume type at once (see
// lane), and not again before its backoff is over. Whoever asks for an operation
// never waits for it.
type Operations struct {
	clock   clock.WithDelayedExecution
	numbers *metrics.Metrics
	locks   keyed.Locks
	wait    sync.WaitGroup
	mu      sync.Mutex
	states  map[string]*operation
	lanes   map[string]*lane
	stopped bool
	// finished is told whose operation came to an end.
	finished func(types.UID)
}

// New returns an Operations with nothing running. Numbers, which count them,
// may be nil.
func New(clock clock.WithDelayedExecution, numbers *metrics.Metrics) *Operations {
	return &Operations{
		clock: clock, numbers: numbers, states: map[string]*operation{}, lanes: map[string]*lane{}, finished: func(types.UID) {},
	}
}

// Do has a task done, unless something runs at its directory or its backoff isn't
// over, and says how it stands. The pod is told when it ends. What failed doesn't hold
// up the opposite, and what an unmount undoes is cancelled: it is over once its work
// has returned, and until then nothing else begins there.
// A shutdown of the program doesn't cancel the work: half a mount is worse than
// a late one.
func (o *Operations) Do(ctx context.Context, task Task, work func(context.Context) error) Outcome {
	o.mu.Lock()
	defer o.mu.Unlock()
	state, known := o.states[task.Dir]
	if known && task.Kind.undoes(state.Kind) {
		o.cancel(state)
		state, known = o.states[task.Dir]
	}
	now := o.clock.Now()
	switch {
	case known && state.phase != idle:
		return state.outcome(now)
	case known && state.Kind == task.Kind && now.Before(state.retryAt):
		return Outcome{Err: state.err, RetryAfter: state.retryAt.Sub(now)}
	case o.stopped:
		return Outcome{Queued: true}
	}
	release, acquired := o.locks.TryAcquire(task.Dir)
	if !acquired {
		return Outcome{Running: true}
	}
	if !known || state.Kind != task.Kind {
		state = &operation{}
		o.states[task.Dir] = state
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	state.prepare(task, func() error { defer cancel(); return work(ctx) }, cancel, release)
	o.enqueue(state)
	return state.outcome(o.clock.Now())
}

// Cancel cancels what is to be mounted for a pod, which doesn't need it any more. What
// ends by that hasn't failed.
func (o *Operations) Cancel(pod types.UID) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, state := range o.states {
		if state.Pod == pod && Unmounting.undoes(state.Kind) {
			o.cancel(state)
		}
	}
}

// cancel drops an operation that waits for its turn, and tells one that runs to end.
func (o *Operations) cancel(state *operation) {
	switch state.phase {
	case queued:
		o.drop(state)
	case running:
		state.cancelled = true
		state.cancel()
	case idle:
	}
}

// OnEnd sets who is told whose operation came to an end.
func (o *Operations) OnEnd(tell func(types.UID)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.finished = tell
}

// end records how an operation ended, begins what waits for its place, and returns who
// is to be told.
func (o *Operations) end(state *operation, err error) func(types.UID) {
	o.mu.Lock()
	defer o.mu.Unlock()
	state.release()
	state.ended(metrics.OutcomeOf(err, state.cancelled))
	state.phase, state.err = idle, err
	if err == nil || state.cancelled {
		delete(o.states, state.Dir)
	} else {
		delay := min(firstRetry<<min(state.failures, 16), LastRetry)
		state.failures++
		state.retryAt = o.clock.Now().Add(delay)
	}
	o.leave(state.loan)
	return o.finished
}

// Forget drops how a pod's operations failed. What runs stays known.
func (o *Operations) Forget(pod types.UID) {
	o.mu.Lock()
	defer o.mu.Unlock()
	maps.DeleteFunc(o.states, func(_ string, state *operation) bool { return state.Pod == pod && state.phase == idle })
}

// Known returns how many operations wait, run, or failed and may be tried again.
func (o *Operations) Known() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.states)
}

// IsRunning says whether anything runs, or waits for its turn, for a pod.
func (o *Operations) IsRunning(pod types.UID) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, state := range o.states {
		if state.phase != idle && state.Pod == pod {
			return true
		}
	}
	return false
}

// IsRunningAt says whether anything runs, or waits for its turn, for a volume directory.
func (o *Operations) IsRunningAt(dir string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	state, known := o.states[dir]
	return known && state.phase != idle
}

// Wait returns when nothing runs any more.
func (o *Operations) Wait() {
	o.wait.Wait()
}

// Stop begins nothing any more, and returns when nothing runs.
func (o *Operations) Stop() {
	o.mu.Lock()
	o.stopped = true
	for _, state := range o.states {
		if state.phase == queued {
			o.drop(state)
		}
	}
	o.mu.Unlock()
	o.Wait()
}
