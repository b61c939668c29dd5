package queue

import (
	"context"
	"fmt"
	"time"

	"github.com/stowage-dev/stowage/internal/backend"
)

// useSlot begins a call that has a slot. A call that has not begun gets the latest subject: what the
// earlier one was decided on may have changed.
func (q *Queue) useSlot(of *backendQueue, open, c *call) {
	if open.state == queued || open.state == granted {
		open.subject, open.run, open.metric = c.subject, c.run, c.metric
	}
	if open.state == granted {
		q.begin(of, open)
	}
	q.advance(of)
	q.measureWaiting(of)
}

// advance gives slots to as many calls as may run. A caller that waits has just decided, so its call
// begins; all others are woken to decide again, and come for their slot.
func (q *Queue) advance(of *backendQueue) {
	for of.inUse < of.slots {
		c := of.next()
		if c == nil {
			return
		}
		if len(c.waiting) > 0 {
			q.begin(of, c)
			continue
		}
		c.state = granted
		c.wakeAll()
		time.AfterFunc(slotKept, func() { q.expireSlot(of, c) })
	}
}

func (q *Queue) begin(of *backendQueue, c *call) {
	c.state = running
	if c.metric != "" {
		q.metrics.Began(c.metric, time.Since(c.entered))
	}
	go q.run(of, c)
}

// expireSlot frees a slot that no caller came for.
func (q *Queue) expireSlot(of *backendQueue, c *call) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if c.state != granted {
		return
	}
	of.end(c)
	of.forget(c)
	q.advance(of)
}

// run makes a call and wakes the callers that returned.
func (q *Queue) run(of *backendQueue, c *call) {
	ctx, cancel := context.WithTimeout(q.ctx, timeout)
	defer cancel()
	answer, err := q.measure(backend.OnAccepted(ctx, func() { q.freeSlot(of, c) }), c)

	q.mu.Lock()
	defer q.mu.Unlock()
	c.answer, c.err, c.state = answer, err, ended
	close(c.done)
	for by := range c.waiting {
		delete(c.wakes, by)
	}
	if len(c.waiting) == 0 {
		time.AfterFunc(c.answerKept(), func() { q.expireAnswer(of, c) })
	}
	c.wakeAll()
	of.end(c)
	q.advance(of)
	q.measureWaiting(of)
}

// measureWaiting reports how many calls wait for a slot.
func (q *Queue) measureWaiting(of *backendQueue) {
	if of.metric != "" {
		q.metrics.Waiting(of.metric, of.waiting)
	}
}

// freeSlot frees the slot of a call that the storage has accepted. No other call for the volume runs
// before this one ends.
func (q *Queue) freeSlot(of *backendQueue, c *call) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !c.accepted && c.state == running {
		c.accepted = true
		of.inUse--
		q.advance(of)
	}
}

// expireAnswer drops an answer that no caller came for.
func (q *Queue) expireAnswer(of *backendQueue, c *call) {
	q.mu.Lock()
	defer q.mu.Unlock()
	of.forget(c)
}

// measure makes a call, and reports its duration, without the time in the queue.
func (q *Queue) measure(ctx context.Context, c *call) (any, error) {
	began := time.Now()
	answer, err := recovered(ctx, c)
	if c.metric != "" {
		q.metrics.Called(c.metric, string(c.operation), time.Since(began), err)
	}
	return answer, err
}

// recovered turns a panic of a backend, which would end the program, into an error with an
// unknown outcome.
func recovered(ctx context.Context, c *call) (answer any, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("%s of volume %s: the backend panicked: %v", c.operation, c.id, cause)
		}
	}()
	return c.run(ctx)
}
