// Package dispatch keeps slow storage from holding up who asks for it.
//
// A Dispatcher stands between the reconcilers and the backends. It makes their
// calls in goroutines of its own: of each backend as many at once as its object
// allows, those apart that the storage has taken, and fair between the namespaces that wait for their turn. A caller stays
// for a moment; where the answer takes longer it is told backend.Queued, and woken
// when there is one, which the same call then returns.
//
// It decides nothing and knows no Kubernetes client. What a crash loses here is no
// more than a call whose outcome isn't known, which every caller can live with.
package queue

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/stowage-dev/stowage/internal/backend"
)

const (
	// patience is how long a caller waits for an answer before it gives up its
	// place: most backends answer sooner, and waking somebody costs more.
	patience = 200 * time.Millisecond
	// timeout is how long a call may take. Its outcome isn't known then.
	timeout = 2 * time.Minute
	// keep is how long an answer waits for a caller that doesn't come, and turnHeld
	// how long a turn does.
	keep     = time.Minute
	turnHeld = 15 * time.Second
	// keepObserved is keep for what a machine is, and has: it may be another thing soon,
	// and volumes are taken by force for it.
	keepObserved = 10 * time.Second
)

// Dispatcher makes calls to backends. All methods can be called at once.
type Dispatcher struct {
	ctx   context.Context
	mu    sync.Mutex
	lanes map[string]*lane
}

// New makes a dispatcher whose calls end when the context does.
func New(ctx context.Context) *Dispatcher {
	return &Dispatcher{ctx: ctx, lanes: map[string]*lane{}}
}

// ask returns the answer to a question about a volume, at once or when it is asked
// again. Of one volume, or of one on one node, one question is open at a time: another
// one waits until the first is answered, and makes that answer void.
func (d *Dispatcher) ask(ctx context.Context, on *served, c *call) (answer any, err error) {
	l, who, asked := d.enter(on.lane), c.asker(on), c.question
	open := l.find(c)
	open.wakes[who] = on.wake
	if open.state == begun && open.question != asked {
		defer d.mu.Unlock()
		return nil, backend.Queued.Errorf("waiting for the %s of volume %s to end", open.question.verb, c.id)
	}
	open.stay(who)
	d.comeForTurn(l, open, c) //nolint:contextcheck // a call outlives the caller who asked for it
	d.mu.Unlock()

	stay := time.NewTimer(patience)
	defer stay.Stop()
	select {
	case <-open.done:
	case <-stay.C:
	case <-ctx.Done():
	}

	d.mu.Lock()
	defer d.mu.Unlock()
	open.leave(who)
	if open.state != ended {
		return nil, open.unanswered(l)
	}
	l.forget(open)
	// Somebody else may have asked something else of the volume before it was called.
	if open.void() || open.question != asked {
		on.wake()
		return nil, open.unanswered(l)
	}
	return open.answer, open.err
}

// ended returns the answer to a question that no caller has had, and whether there is one,
// or will be: that of another question of the same verb is waited for, and is none.
func (d *Dispatcher) ended(on *served, asked question, about key) (found bool, err error) {
	l := d.enter(on.lane)
	defer d.mu.Unlock()
	open := l.calls[about]
	switch {
	case open == nil || open.question.verb != asked.verb:
		return false, nil
	case open.state == begun:
		open.wakes[asked.verb] = on.wake
		return true, open.unanswered(l)
	case open.state != ended || open.question != asked || open.void():
		return false, nil
	}
	l.forget(open)
	return true, open.err
}

// Renew says that something happened to a volume. What a call which began before
// answers of work that goes on may not be so any more: it is void, and whoever asks is
// given the answer of a call that begins after this one.
func (d *Dispatcher) Renew(id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, l := range d.lanes {
		if open := l.calls[key{id: id}]; open != nil && (open.state == begun || open.state == ended) {
			open.outdated = true
		}
	}
}

// comeForTurn begins a call whose turn it is. One that has not begun asks what was
// asked last: what the earlier question was decided on may have changed.
func (d *Dispatcher) comeForTurn(l *lane, open, c *call) {
	if open.state == queued || open.state == granted {
		open.question, open.run = c.question, c.run
	}
	if open.state == granted {
		d.begin(l, open)
	}
	d.advance(l)
}

// enter returns a backend's lane with the dispatcher locked.
func (d *Dispatcher) enter(on Lane) *lane {
	d.mu.Lock()
	l := d.lanes[on.Backend]
	if l == nil {
		l = newLane(on.Backend)
		d.lanes[on.Backend] = l
	}
	l.limit = max(1, on.Limit)
	return l
}

// advance gives as many calls their turn as may run. Who stays for the answer has
// just decided; all others are woken to decide again, and come for their turn.
func (d *Dispatcher) advance(l *lane) {
	for l.running < l.limit {
		c := l.next()
		if c == nil {
			return
		}
		if len(c.waiting) > 0 {
			d.begin(l, c)
			continue
		}
		c.state = granted
		c.wakeAll()
		time.AfterFunc(turnHeld, func() { d.expire(l, c) })
	}
}

func (d *Dispatcher) begin(l *lane, c *call) {
	c.state = begun
	go d.make(l, c)
}

// expire takes a turn back for which nobody came.
func (d *Dispatcher) expire(l *lane, c *call) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if c.state != granted {
		return
	}
	l.end(c)
	l.forget(c)
	d.advance(l)
}

// make makes a call and tells who waits for it.
func (d *Dispatcher) make(l *lane, c *call) {
	ctx, cancel := context.WithTimeout(d.ctx, timeout)
	defer cancel()
	answer, err := unpanicked(backend.OnTaken(ctx, func() { d.release(l, c) }), c)

	d.mu.Lock()
	defer d.mu.Unlock()
	c.answer, c.err, c.state = answer, err, ended
	close(c.done)
	for who := range c.waiting {
		delete(c.wakes, who)
	}
	if len(c.waiting) == 0 {
		time.AfterFunc(c.keeps(), func() { d.drop(l, c) })
	}
	c.wakeAll()
	l.end(c)
	d.advance(l)
}

// release lets another call be made, while the storage works on this one. Nothing else
// happens to the volume before this one ends.
func (d *Dispatcher) release(l *lane, c *call) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !c.released && c.state == begun {
		c.released = true
		l.running--
		d.advance(l)
	}
}

// drop forgets an answer that nobody came for.
func (d *Dispatcher) drop(l *lane, c *call) {
	d.mu.Lock()
	defer d.mu.Unlock()
	l.forget(c)
}

// unpanicked turns a panic of a backend, which would end the whole program, into an
// error whose outcome isn't known.
func unpanicked(ctx context.Context, c *call) (answer any, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("%s of volume %s: the backend panicked: %v", c.question.verb, c.id, cause)
		}
	}()
	return c.run(ctx)
}
