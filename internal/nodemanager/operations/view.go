package operations

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
)

// View is which operations of a pod were running or queued at a time. What its owner has read since
// may be older than what one of them did. So Do doesn't do again what one of them has done by then.
type View struct {
	operations *Operations
	running    map[string]Kind
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
	return View{operations: o, running: running}
}

// IsRunning reports whether an operation ran, or was queued.
func (v View) IsRunning() bool { return len(v.running) > 0 }

// Do is Operations.Do, unless an operation of the same kind has succeeded or was cancelled at the
// directory since: it still counts as running. OnEnd's function was called, or is about to be.
func (v View) Do(ctx context.Context, task Task, work func(context.Context) error) Outcome {
	o := v.operations
	o.mu.Lock()
	defer o.mu.Unlock()
	kind, ran := v.running[task.Dir]
	if _, known := o.states[task.Dir]; !known && ran && kind == task.Kind {
		return Outcome{Running: true}
	}
	return o.do(ctx, task, work)
}
