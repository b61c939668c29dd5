// Package operations runs mounts, unmounts and other work that may take long, each in a goroutine of
// its own. It runs one at a time for each volume directory, and a bounded number of each volume type.
// A failed operation has a backoff. Only Settle, Wait and Stop wait for operations, and the end of the
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

// Outcome is the state of the operation of one volume.
type Outcome struct {
	// RunningFor is how long it has been running, if Running.
	Running    bool
	RunningFor time.Duration
	// QueuedFor is how long it has been queued, if Queued.
	Queued    bool
	QueuedFor time.Duration
	// Err is its last error, and RetryAfter when it may run again.
	Err        error
	RetryAfter time.Duration
}

// Operations runs operations: one per volume directory at a time, a bounded number per volume
// type (see queues), and none before its backoff is over. Its methods may be called at once.
type Operations struct {
	clock   clock.PassiveClock
	locks   keyed.Locks
	mu      sync.Mutex
	states  map[string]*operation
	queues  *queues
	stopped bool
	// onEnd is called with the pod of each operation whose end no View sees.
	onEnd func(types.UID)
}

// New returns an Operations with nothing running. metrics may be nil.
func New(clock clock.WithDelayedExecution, metrics *metrics.Metrics) *Operations {
	o := &Operations{clock: clock, states: map[string]*operation{}, onEnd: func(types.UID) {}}
	o.queues = &queues{lock: &o.mu, clock: clock, metrics: metrics, of: map[string]*queue{}}
	return o
}

// Do queues the work of a task, unless an operation runs at its directory or the backoff isn't
// over. It returns the state of the directory's operation. OnEnd's function is called when the work
// ends. A failed mount doesn't delay its unmount. An unmount cancels what it undoes, and begins
// once that work has returned. A shutdown of the program doesn't cancel the work: half a mount is
// worse than a late one.
func (o *Operations) Do(ctx context.Context, task Task, work func(context.Context) error) Outcome {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.do(ctx, task, work, nil)
}

// do is Do with the lock held, for a View; nil: for none.
func (o *Operations) do(ctx context.Context, task Task, work func(context.Context) error, begun *begun) Outcome {
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
	state.prepare(task, func() { o.run(ctx, state, work) }, cancel, release)
	state.begun = begun.add()
	o.queues.add(state)
	return state.outcome(o.clock.Now())
}

// Cancel cancels the mounts and refreshes of a pod. A cancelled operation hasn't failed.
func (o *Operations) Cancel(pod types.UID) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, state := range o.states {
		if state.Pod == pod && Unmounting.undoes(state.Kind) {
			o.cancel(state)
		}
	}
}

// cancel drops a queued operation, and cancels the context of a running one.
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

// drop removes an operation that hasn't begun.
func (o *Operations) drop(state *operation) {
	o.queues.remove(state)
	state.cancel()
	state.release()
	state.begun.end()
	delete(o.states, state.Dir)
}

// OnEnd sets what is called with the pod of each operation that ended. Ends that a View sees are
// left out.
func (o *Operations) OnEnd(ended func(types.UID)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.onEnd = ended
}

// wake calls OnEnd's function.
func (o *Operations) wake(pod types.UID) {
	o.mu.Lock()
	onEnd := o.onEnd
	o.mu.Unlock()
	onEnd(pod)
}

// run does the work of an operation, and calls OnEnd's function if no View sees the end.
func (o *Operations) run(ctx context.Context, state *operation, work func(context.Context) error) {
	defer state.cancel()
	task, began := state.Task, time.Now()
	err := work(ctx)
	if err == nil {
		task.log(ctx, began)
	}
	o.end(state, err)(task.Pod)
}

// end records how an operation ended, and returns what is to be called with its pod.
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
	state.leave()
	if state.begun.end() {
		return func(types.UID) {}
	}
	return o.onEnd
}

// Forget drops a pod's failed operations, and their backoff.
func (o *Operations) Forget(pod types.UID) {
	o.mu.Lock()
	defer o.mu.Unlock()
	maps.DeleteFunc(o.states, func(_ string, state *operation) bool { return state.Pod == pod && state.phase == idle })
}

// Known returns how many operations are queued, running, or failed.
func (o *Operations) Known() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.states)
}

// IsRunningAt reports whether a volume directory has a running or queued operation.
func (o *Operations) IsRunningAt(dir string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	state, known := o.states[dir]
	return known && state.phase != idle
}

// Wait returns once no operation runs.
func (o *Operations) Wait() {
	o.queues.running.Wait()
}

// Stop drops what is queued, begins nothing any more, and returns once no operation runs.
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
