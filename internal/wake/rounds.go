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
	// Clock is the time.
	Clock clock.PassiveClock
	// Each is how long a round lasts for each object in it.
	Each time.Duration
	// Rest is how long a round lasts at least.
	Rest time.Duration

	mu sync.Mutex
	// last is, by group, the round that begins last.
	last map[string]round
}

type round struct{ begin, end time.Time }

// Wake adds the objects of a group to a queue, each in its turn. It lists them only where
// a round is due.
func (r *Rounds) Wake(group string, queue workqueue.TypedDelayingInterface[reconcile.Request], list func() []reconcile.Request) {
	if r.isCovered(group) {
		return
	}
	objects := list()
	delay := r.begin(group, len(objects))
	for i, object := range objects {
		queue.AddAfter(object, delay+time.Duration(i)*r.Each)
	}
}

// isCovered says whether a round of a group has yet to begin.
func (r *Rounds) isCovered(group string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last[group].begin.After(r.Clock.Now())
}

// begin plans a group's next round, and returns how long it is until it begins. A round of
// no objects is none.
func (r *Rounds) begin(group string, objects int) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.Clock.Now()
	if objects == 0 {
		return 0
	}
	next := round{begin: now}
	if end := r.last[group].end; end.After(now) {
		next.begin = end
	}
	next.end = next.begin.Add(max(r.Rest, time.Duration(objects)*r.Each))
	if r.last == nil {
		r.last = map[string]round{}
	}
	r.last[group] = next
	return next.begin.Sub(now)
}
