package nodemanager

import (
	"context"
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
)

const (
	// firstRetry and lastRetry bound how long a failed operation waits before it
	// is tried again; the time doubles with each failure.
	firstRetry = 500 * time.Millisecond
	lastRetry  = 2 * time.Minute
)

// Kind is what an operation does to a volume's directory.
type Kind int

const (
	// Mounting makes the volume visible there.
	Mounting Kind = iota
	// Unmounting takes it away.
	Unmounting
)

// Outcome is what is known of the operation of one volume.
type Outcome struct {
	// RunningFor is how long it has been running, if Running.
	Running    bool
	RunningFor time.Duration
	// Err is how it failed the last time, and RetryAfter when it may run again.
	Err        error
	RetryAfter time.Duration
}

// Operations runs what may take long, each in a goroutine of its own: at most
// one per volume directory at a time, and not again before its backoff is over.
// Whoever asks for an operation never waits for it.
type Operations struct {
	clock  clock.PassiveClock
	locks  KeyedLock
	wait   sync.WaitGroup
	mu     sync.Mutex
	states map[string]*operation
	// finished is told whose operation came to an end.
	finished func(types.UID)
}

// operation is one volume's, while it runs or after it failed.
type operation struct {
	kind     Kind
	pod      types.UID
	started  time.Time
	running  bool
	err      error
	failures int
	retryAt  time.Time
}

// NewOperations returns an Operations with nothing running.
func NewOperations(clock clock.PassiveClock) *Operations {
	return &Operations{clock: clock, states: map[string]*operation{}, finished: func(types.UID) {}}
}

// Do starts the work of a volume directory unless something runs there or its
// backoff isn't over, and says how it stands. The pod is told when it ends. What
// failed doesn't hold up the opposite.
// A shutdown of the program doesn't cancel the work: half a mount is worse than
// a late one.
func (o *Operations) Do(ctx context.Context, kind Kind, dir string, pod types.UID, work func(context.Context) error) Outcome {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := o.clock.Now()
	state, known := o.states[dir]
	if known && state.running {
		return Outcome{Running: true, RunningFor: now.Sub(state.started)}
	}
	if known && state.kind == kind && now.Before(state.retryAt) {
		return Outcome{Err: state.err, RetryAfter: state.retryAt.Sub(now)}
	}
	release, acquired := o.locks.TryAcquire(dir)
	if !acquired {
		return Outcome{Running: true}
	}
	if !known || state.kind != kind {
		state = &operation{kind: kind}
		o.states[dir] = state
	}
	state.pod, state.running, state.started = pod, true, now
	o.wait.Go(func() {
		err := work(context.WithoutCancel(ctx))
		release()
		o.end(dir, state, err)(pod)
	})
	return Outcome{Running: true}
}

// OnEnd sets who is told whose operation came to an end.
func (o *Operations) OnEnd(tell func(types.UID)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.finished = tell
}

// end records how an operation ended, and returns who is to be told.
func (o *Operations) end(dir string, state *operation, err error) func(types.UID) {
	o.mu.Lock()
	defer o.mu.Unlock()
	state.running, state.err = false, err
	if err == nil {
		delete(o.states, dir)
		return o.finished
	}
	delay := min(firstRetry<<min(state.failures, 16), lastRetry)
	state.failures++
	state.retryAt = o.clock.Now().Add(delay)
	return o.finished
}

// Forget drops how a pod's operations failed. What runs stays known.
func (o *Operations) Forget(pod types.UID) {
	o.mu.Lock()
	defer o.mu.Unlock()
	maps.DeleteFunc(o.states, func(_ string, state *operation) bool { return state.pod == pod && !state.running })
}

// IsRunning says whether anything runs for a pod.
func (o *Operations) IsRunning(pod types.UID) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, state := range o.states {
		if state.running && state.pod == pod {
			return true
		}
	}
	return false
}

// IsRunningAt says whether anything runs for a volume directory.
func (o *Operations) IsRunningAt(dir string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	state, known := o.states[dir]
	return known && state.running
}

// Wait returns when nothing runs any more.
func (o *Operations) Wait() {
	o.wait.Wait()
}
