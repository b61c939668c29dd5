// Package wake paces how often objects are reconciled that all wait for the same thing, such
// as free space on the disks of a backend. Each change of that thing may help any of them:
// without a pace, the cost is changes times objects. The reconciler of claims and the node
// agent's reconciler of NodeVolumes use it. It decides when objects are reconciled, and never
// which of them gets something.
package wake

import (
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Rounds wakes the objects of a group one after another, in rounds that do not overlap. A
// change starts a round at once, or after the current round if there is one. A round that has
// not begun covers later changes. So each object is reconciled after each change, and a group
// costs at most one object per Each. All methods can be called concurrently.
type Rounds struct {
	// Clock returns the time and starts delayed rounds.
	Clock clock.WithDelayedExecution
	// Each is the time that a round takes for each object in it.
	Each time.Duration
	// Rest is the minimum time of a round.
	Rest time.Duration

	mu sync.Mutex
	// last is the latest round of each group, begun or planned.
	last map[string]round
}

// round is one round of a group. Its end is known when it begins.
type round struct {
	planned bool
	end     time.Time
}

// Wake adds the objects of a group to a queue, spread over a round. It lists them only when
// their round begins, because a queue keeps the earlier of two times of an object. An object
// that the previous round has yet to wake would miss the next round.
func (r *Rounds) Wake(group string, queue workqueue.TypedDelayingInterface[reconcile.Request], list func() []reconcile.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now, last := r.Clock.Now(), r.last[group]
	switch {
	case last.planned:
	case last.end.After(now):
		r.keep(group, round{planned: true, end: last.end})
		r.Clock.AfterFunc(last.end.Sub(now), func() {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.begin(group, last.end, queue, list)
		})
	default:
		r.begin(group, now, queue, list)
	}
}

// begin starts a round. Without objects there is no round. The lock is held: a change that
// comes during that may be missing in the list.
func (r *Rounds) begin(group string, now time.Time, queue workqueue.TypedDelayingInterface[reconcile.Request], list func() []reconcile.Request) {
	objects := list()
	if len(objects) == 0 {
		delete(r.last, group)
		return
	}
	r.keep(group, round{end: now.Add(max(r.Rest, time.Duration(len(objects))*r.Each))})
	for i, object := range objects {
		queue.AddAfter(object, time.Duration(i)*r.Each)
	}
}

func (r *Rounds) keep(group string, next round) {
	if r.last == nil {
		r.last = map[string]round{}
	}
	r.last[group] = next
}
