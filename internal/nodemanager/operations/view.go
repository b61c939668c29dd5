package operations

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// settleTime is how long Settle waits at most. Most operations take less: the pass that began them is
// then the last one.
const settleTime = 100 * time.Millisecond

// View is one look at the operations of a pod: which were running or queued at a time. What its owner
// has read since may be older than what one of them did. So Do doesn't do again what one of them has
// done by then. The owner calls Close.
type View struct {
	operations *Operations
	pod        types.UID
	running    map[string]Kind
	begun      *begun
}

// View returns the running and queued operations of a pod.
func (o *Operations) View(pod types.UID) View {
	o.mu.Lock()
	defer o.mu.Unlock()
	running := map[string]Kind{}
	for dir, state := range o.states {
		if state.phase != idle && state.Pod == pod {
			running[dir] = state.Kind
		}
	}
	return View{operations: o, pod: pod, running: running, begun: &begun{}}
}

// IsRunning reports whether an operation of a pod runs, or is queued.
func (o *Operations) IsRunning(pod types.UID) bool { return o.View(pod).IsRunning() }

// IsRunning reports whether an operation ran, or was queued.
func (v View) IsRunning() bool { return len(v.running) > 0 }

// Do is Operations.Do, unless an operation of the same kind has succeeded or was cancelled at the
// directory since: it still counts as running, and OnEnd's function was called, or is about to be. The
// owner sees the end of what it begins, by Settle, or else OnEnd's function is called.
func (v View) Do(ctx context.Context, task Task, work func(context.Context) error) Outcome {
	o := v.operations
	o.mu.Lock()
	defer o.mu.Unlock()
	kind, ran := v.running[task.Dir]
	if _, known := o.states[task.Dir]; !known && ran && kind == task.Kind {
		return Outcome{Running: true}
	}
	return o.do(ctx, task, work, v.begun)
}

// Settle waits a moment for the operations that the View began. It reports whether one has ended: the
// owner then looks again, with another View. OnEnd's function is called for those that still run.
func (v View) Settle(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	select {
	case <-v.settled():
	case <-ctx.Done():
	}
	return v.leave()
}

// Close ends the View. If operations have ended that Settle didn't wait for, it calls OnEnd's function.
func (v View) Close() {
	if v.leave() {
		v.operations.wake(v.pod)
	}
}

// settled returns a channel that is closed once all operations that the View began have ended.
func (v View) settled() <-chan struct{} {
	v.operations.mu.Lock()
	defer v.operations.mu.Unlock()
	v.begun.settled = make(chan struct{})
	if v.begun.running == 0 {
		close(v.begun.settled)
	}
	return v.begun.settled
}

// leave reports, once, whether an operation that the View began has ended.
func (v View) leave() bool {
	v.operations.mu.Lock()
	defer v.operations.mu.Unlock()
	v.begun.left, v.begun.settled = true, nil
	ended := v.begun.hasEnded
	v.begun.hasEnded = false
	return ended
}
