package remote

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// ErrBusy says that too many calls wait for a server, or for all servers: no further call
// begins until one of them ends.
var ErrBusy = errors.New("no further call begins until one of them ends")

// slowAfter is how long a call may take until its server counts as silent, and how long a call
// waits for a slot at most.
const slowAfter = 5 * time.Second

// maxRemovals is how many calls remove files of a server at once: each works for long, also
// with a server that answers.
const maxRemovals = 2

// maxKnown is how many servers are remembered that answered last.
const maxKnown = 1024

// limits are how many calls may run when one of a kind begins. The first counts its server, the
// others all servers: one if its own isn't known to answer, one if it is. Pods can name servers
// themselves, so the last slots are for servers that did answer. Unmounts have more slots than
// mounts, and detaches have more still: pods that wait for a silent server can go.
type limits struct{ server, silent, total int }

var (
	toMount  = limits{4, 32, 48}
	toAsk    = limits{6, 36, 52}
	toDetach = limits{8, 40, 56}
)

// Slots bounds the processes that wait for servers, each of which takes memory of the agent. A
// call has its slot until its process is gone, killed or not. Its zero value is usable. It is
// safe for concurrent use.
type Slots struct {
	mu      sync.Mutex
	servers map[string]*serverCalls
	running int
	// ended is closed when a call ends.
	ended chan struct{}
}

// serverCalls are the calls that run for one server.
type serverCalls struct {
	running, removing int
	// begun is when those began that aren't removals.
	begun map[*slot]time.Time
	// answers: the last call that asked the server wasn't killed.
	answers bool
}

// slot is that of one call.
type slot struct {
	of      *Slots
	server  string
	removes bool
}

// acquire waits for a slot while the calls of the server, and the others, may still be
// answered. Else it is ErrBusy at once.
func (p *Slots) acquire(ctx context.Context, to peer, limit limits, removes bool) (*slot, error) {
	arrived := time.Now()
	for {
		taken, ended, busy := p.tryAcquire(to, limit, removes)
		if taken != nil {
			return taken, nil
		}
		switch err := awaitEnd(ctx, ended, p.patience(to, arrived)); {
		case errors.Is(err, ErrBusy):
			return nil, busy
		case err != nil:
			return nil, fmt.Errorf("%w (%w)", busy, err)
		}
	}
}

// tryAcquire returns a slot; or a channel that is closed when another call ends, and what is
// wrong.
func (p *Slots) tryAcquire(to peer, limit limits, removes bool) (*slot, <-chan struct{}, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	of := p.of(to.key)
	total := limit.silent
	if of.answers {
		total = limit.total
	}
	switch {
	case of.running >= limit.server || removes && of.removing >= maxRemovals:
		return nil, p.nextEnd(), fmt.Errorf("%d calls of this node wait for server %s: %w: look whether the server is up and this node reaches it", of.running, to.name, ErrBusy)
	case p.running >= total:
		return nil, p.nextEnd(), fmt.Errorf("%d calls of this node wait for their servers, and none begins for server %s: %w: look which servers of this node's volumes don't answer", p.running, to.name, ErrBusy)
	}
	taken := &slot{p, to.key, removes}
	p.running++
	of.running++
	if removes {
		of.removing++
	} else {
		of.begun[taken] = time.Now()
	}
	return taken, nil, nil
}

// of returns what is known of a server.
func (p *Slots) of(key string) *serverCalls {
	if p.servers == nil {
		p.servers = map[string]*serverCalls{}
	}
	if p.servers[key] == nil {
		p.forgetIdle()
		p.servers[key] = &serverCalls{begun: map[*slot]time.Time{}}
	}
	return p.servers[key]
}

// forgetIdle makes room for another server.
func (p *Slots) forgetIdle() {
	for key, idle := range p.servers {
		if len(p.servers) < maxKnown {
			return
		}
		if idle.running == 0 {
			delete(p.servers, key)
		}
	}
}

func (p *Slots) nextEnd() <-chan struct{} {
	if p.ended == nil {
		p.ended = make(chan struct{})
	}
	return p.ended
}

// patience is how long a call may still wait for a slot. That is no longer than the oldest call of
// its server may still be answered in time.
func (p *Slots) patience(to peer, arrived time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	oldest := arrived
	for _, begun := range p.of(to.key).begun {
		if begun.Before(oldest) {
			oldest = begun
		}
	}
	return slowAfter - time.Since(oldest)
}

// awaitEnd waits for the end of another call, or of the patience: that is ErrBusy.
func awaitEnd(ctx context.Context, ended <-chan struct{}, patience time.Duration) error {
	if patience <= 0 {
		return ErrBusy
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-ended:
		return nil
	case <-timer.C:
		return ErrBusy
	case <-ctx.Done():
		return ctx.Err()
	}
}

// release frees the slot, once the process of its call is gone.
func (at *slot) release() {
	p := at.of
	p.mu.Lock()
	defer p.mu.Unlock()
	of := p.servers[at.server]
	p.running--
	of.running--
	if at.removes {
		of.removing--
	}
	delete(of.begun, at)
	if p.ended != nil {
		close(p.ended)
		p.ended = nil
	}
}

// setAnswers records whether the server answered a call.
func (at *slot) setAnswers(answers bool) {
	at.of.mu.Lock()
	defer at.of.mu.Unlock()
	at.of.servers[at.server].answers = answers
}

// peer is the server that a call may wait for. Its key is its address: tenants can give a
// server any number of names.
type peer struct{ key, name string }
