// Package queue keeps slow storage from holding up the reconcilers that call it.
//
// A Queue stands between the reconcilers and the backends. It makes their calls in
// goroutines of its own: for each backend as many at once as its object allows, without
// those that the storage has taken, and fair between the namespaces that wait. A caller
// stays for a moment. If the answer takes longer, the caller gets backend.Queued, is woken
// when the answer is there, and repeats the call to get it. Each call is measured.
//
// The queue decides nothing and knows no Kubernetes client. A crash loses calls whose
// outcome isn't known then; every caller repeats such calls.
package queue

import (
	"context"
	"sync"
	"time"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/metrics"
)

const (
	// callerStays is how long a caller waits for an answer before it goes on: most backends
	// answer sooner, and waking a reconciler costs more.
	callerStays = 200 * time.Millisecond
	// timeout is how long a call may take. Its outcome isn't known then.
	timeout = 2 * time.Minute
	// answerKept is how long an answer waits for a caller that doesn't come, and slotKept
	// how long a slot does.
	answerKept = time.Minute
	slotKept   = 15 * time.Second
	// observationKept is answerKept for what a machine is, and has: that may change soon,
	// and volumes are taken by force because of it.
	observationKept = 10 * time.Second
)

// Queue makes calls to backends. All methods can be called at once.
type Queue struct {
	ctx     context.Context
	metrics *metrics.Metrics
	mu      sync.Mutex
	// queues are those of the backends, by their names.
	queues map[string]*backendQueue
}

// New makes a queue whose calls end when the context does. Nil metrics measure nothing.
func New(ctx context.Context, measured *metrics.Metrics) *Queue {
	return &Queue{ctx: ctx, metrics: measured, queues: map[string]*backendQueue{}}
}

// ask returns the answer to a call about a volume, now or when the call is repeated. For one
// volume, or for one volume on one node, one call is open at a time: a different one waits
// for it to end, and makes its answer void.
func (q *Queue) ask(ctx context.Context, s *served, c *call) (answer any, err error) {
	of, by, asked := q.enter(s.target), c.callerOf(s), c.subject
	open := of.find(c)
	open.wakes[by] = s.wake
	if open.state == begun && open.subject != asked {
		defer q.mu.Unlock()
		return nil, backend.Queued.Errorf("waiting for another call for volume %s to end: %s", c.id, open.operation)
	}
	open.stay(by)
	q.useSlot(of, open, c) //nolint:contextcheck // a call outlives its caller
	q.mu.Unlock()

	stay := time.NewTimer(callerStays)
	defer stay.Stop()
	select {
	case <-open.done:
	case <-stay.C:
	case <-ctx.Done():
	}

	q.mu.Lock()
	defer q.mu.Unlock()
	open.leave(by)
	if open.state != ended {
		return nil, of.unanswered(open)
	}
	of.forget(open)
	// Another caller may have changed the subject before the call began.
	if open.isVoid() || open.subject != asked {
		s.wake()
		return nil, of.unanswered(open)
	}
	return open.answer, open.err
}

// collect returns the error that a call ended with which no caller has had, and whether there
// is or will be one. A call of the same operation with another subject is waited for, and is
// none.
func (q *Queue) collect(s *served, asked subject, about key) (found bool, err error) {
	of := q.enter(s.target)
	defer q.mu.Unlock()
	open := of.calls[about]
	switch {
	case open == nil || open.operation != asked.operation:
		return false, nil
	case open.state == begun:
		open.wakes[asked.operation] = s.wake
		return true, of.unanswered(open)
	case open.state != ended || open.subject != asked || open.isVoid():
		return false, nil
	}
	of.forget(open)
	return true, open.err
}

// Discard discards in-progress answers about a volume from calls that began before now,
// because something happened to the volume since. Their callers get the answer of a call that
// begins after this one.
func (q *Queue) Discard(id string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, of := range q.queues {
		if open := of.calls[key{id: id}]; open != nil && (open.state == begun || open.state == ended) {
			open.outdated = true
		}
	}
}

// enter returns the queue of a target with the lock held.
func (q *Queue) enter(target Target) *backendQueue {
	q.mu.Lock()
	of := q.queues[target.Name]
	if of == nil {
		of = newBackendQueue(target.Name)
		q.queues[target.Name] = of
	}
	of.slots = max(1, target.Limit)
	return of
}
