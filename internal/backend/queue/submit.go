package queue

import (
	"context"
	"time"

	"github.com/stowage-dev/stowage/internal/backend"
)

// submit returns the answer to a call about a volume, now or when the call is repeated. For one
// volume, or for one volume on one node, one call is open at a time. A different one waits for its
// end, and makes its answer void.
func (q *Queue) submit(ctx context.Context, s *served, c *call) (answer any, err error) {
	of, by, requested := q.enter(s.target), c.callerOf(s), c.subject
	open := of.find(c)
	open.wakes[by] = s.wake
	if open.state == running && open.subject != requested {
		defer q.mu.Unlock()
		return nil, backend.Queued.Errorf("waiting for another call for volume %s to end: %s", c.id, open.operation)
	}
	open.addWaiter(by)
	q.useSlot(of, open, c) //nolint:contextcheck // a call outlives its caller
	q.mu.Unlock()

	wait := time.NewTimer(callerWaits)
	defer wait.Stop()
	select {
	case <-open.done:
	case <-wait.C:
	case <-ctx.Done():
	}

	q.mu.Lock()
	defer q.mu.Unlock()
	open.removeWaiter(by)
	if open.state != ended {
		return nil, of.unanswered(open)
	}
	of.forget(open)
	// Another caller may have changed the subject before the call began.
	if open.isVoid() || open.subject != requested {
		s.wake()
		return nil, of.unanswered(open)
	}
	return open.answer, open.err
}

// collect returns the answer to an ended call that no caller has had, and whether there is or will be
// one. A running call with another subject counts, too; after its end it doesn't.
func (q *Queue) collect(s *served, requested subject, about key) (answer any, found bool, err error) {
	of := q.enter(s.target)
	defer q.mu.Unlock()
	open := of.calls[about]
	switch {
	case open == nil || open.operation != requested.operation:
		return nil, false, nil
	case open.state == running:
		open.wakes[requested.operation] = s.wake
		return nil, true, of.unanswered(open)
	case open.state != ended || open.subject != requested || open.isVoid():
		return nil, false, nil
	}
	of.forget(open)
	return open.answer, true, open.err
}

// Discard discards in-progress answers about a volume or snapshot from calls that began before now,
// because it changed since. Their callers get the answer of a call that begins later.
func (q *Queue) Discard(id string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, of := range q.queues {
		of.outdate(key{id: id})
		of.outdate(keyOfSnapshot(id))
	}
}

// outdate makes the answer to a call one from before a change.
func (of *backendQueue) outdate(about key) {
	if open := of.calls[about]; open != nil && (open.state == running || open.state == ended) {
		open.outdated = true
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
	of.slots, of.metric = max(1, target.Limit), target.Metric
	return of
}
