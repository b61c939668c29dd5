// Package dispatch keeps slow storage from holding up who asks for it.
//
// A Dispatcher stands between the reconcilers and the backends. It makes their
// calls in goroutines of its own: of each backend as many at once as its object
// allows, and fair between the namespaces that wait for their turn. A caller stays
// for a moment; where the answer takes longer it is told backend.Queued, and woken
// when there is one, which the same call then returns.
//
// It decides nothing and knows no Kubernetes client. What a crash loses here is no
// more than a call whose outcome isn't known, which every caller can live with.
package dispatch

import (
	"context"
	"fmt"
	"maps"
	"slices"
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
	// keep is how long an answer waits for a caller that doesn't come.
	keep = time.Minute
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

// question is a call, to be told from others for the same volume.
type question struct {
	verb string
	// wanted is what the answer depends on.
	wanted wanted
}

// call is a question on its way to an answer.
type call struct {
	question  question
	id        string
	namespace string
	run       func(context.Context) (any, error)
	// wakes tell those who asked that there is an answer, by their verb.
	wakes map[string]func()
	// waiting is how many stay for the answer.
	waiting int

	begun, ended bool
	done         chan struct{}
	answer       any
	err          error
}

// ask returns the answer to a question about a volume, at once or when it is asked
// again. Of one volume one question is open at a time: another one waits until the
// first is answered, and makes that answer void.
func (d *Dispatcher) ask(ctx context.Context, on *served, c *call) (answer any, err error) {
	l := d.enter(on)
	open := l.enqueue(c)
	open.wakes[c.question.verb] = on.wake
	d.advance(l) //nolint:contextcheck // a call outlives the caller who asked for it
	if open.question != c.question {
		defer d.mu.Unlock()
		return nil, backend.Queued.Errorf("waiting for the %s of volume %s to end", open.question.verb, c.id)
	}
	open.waiting++
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
	open.waiting--
	if !open.ended {
		return nil, open.unanswered(l)
	}
	l.forget(open)
	return open.answer, open.err
}

// enter returns a backend's lane with the dispatcher locked.
func (d *Dispatcher) enter(on *served) *lane {
	d.mu.Lock()
	l := d.lanes[on.name]
	if l == nil {
		l = newLane(on.name)
		d.lanes[on.name] = l
	}
	l.limit = on.limit
	return l
}

// advance begins as many calls as may run.
func (d *Dispatcher) advance(l *lane) {
	for l.running < l.limit {
		c := l.next()
		if c == nil {
			return
		}
		c.begun = true
		l.running++
		go d.make(l, c)
	}
}

// make makes a call and tells who waits for it.
func (d *Dispatcher) make(l *lane, c *call) {
	ctx, cancel := context.WithTimeout(d.ctx, timeout)
	defer cancel()
	answer, err := unpanicked(ctx, c)

	d.mu.Lock()
	c.answer, c.err, c.ended = answer, err, true
	close(c.done)
	l.running--
	d.advance(l)
	if c.waiting > 0 {
		delete(c.wakes, c.question.verb)
	} else {
		time.AfterFunc(keep, func() { d.drop(l, c) })
	}
	wakes := slices.Collect(maps.Values(c.wakes))
	d.mu.Unlock()
	for _, wake := range wakes {
		wake()
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

func (c *call) unanswered(l *lane) error {
	if c.begun {
		return backend.Queued.Errorf("waiting for StorageBackend %s to answer", l.name)
	}
	return backend.Queued.Errorf("waiting for a turn: StorageBackend %s makes %d volumes at once (maxConcurrentOperations)", l.name, l.limit)
}
