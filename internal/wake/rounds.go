// Package wake paces how often objects look again that all wait for the same thing, such
// as room on the disks of a backend. Each change of that thing may help any of them:
// without a pace, the cost is changes times objects. The reconciler of claims and the
// node agent's reconciler of local volumes use it. It decides when objects are
// reconciled, and never which of them gets something.
package wake

import (
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Rounds wakes the objects of a group one after another, in rounds that don't overlap. A
// change starts a round, at once where none is under way, and else when the last one is
// over; a round that has yet to begin covers later changes. So each object looks again
// after each change, and a group costs one object per Each at most. All methods can be
// called concurrently.
type Rounds struct {
	// Clock is the time, and begins rounds.
	Clock clock.WithDelayedExecution
	// Each is how long a round lasts for each object in it.
	Each time.Duration
	// Rest is how long a round lasts at least.
	Rest time.Duration

	mu sync.Mutex
	// last is, by group, the round that begins last.
	last map[string]round
}

// round is of one group. Its end is known when it begins.
type round struct {
	planned bool
	end     time.Time
}

// Wake adds the objects of a group to a queue, each in its turn. It lists them when their
// round begins, and no sooner: a queue keeps the earlier of two times of an object, so that
// one which is still to be woken by the round before would miss the next.
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

// begin begins a group's round. One of no objects is none. The lock is held: a change that
// comes meanwhile may be one that the list doesn't have.
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
