package queue

import (
	"slices"
	"time"

	"github.com/stowage-dev/stowage/internal/backend"
)

// backendQueue holds the calls to one backend, or one server.
type backendQueue struct {
	name string
	// metric is the backend's name in metrics; "" if its calls are not measured.
	metric string
	// waiting is how many calls have no slot.
	waiting int
	// slots is how many calls may run at once, and inUse how many do.
	slots, inUse int
	// calls are the open calls, by volume and, of attachments, by node.
	calls map[key]*call
	// busy are the volumes for which a call has a slot or runs.
	busy map[string]bool
	// queued are the calls that have not begun, by namespace. Order is that in which namespaces get
	// slots, so a thousand claims of one namespace don't delay the one of another.
	queued map[string][]*call
	order  []string
}

func newBackendQueue(name string) *backendQueue {
	return &backendQueue{name: name, calls: map[key]*call{}, busy: map[string]bool{}, queued: map[string][]*call{}}
}

// find finds the call that is open for a volume, or queues the given one. The answer to a call with
// another subject is void: the later request may depend on other state.
func (q *backendQueue) find(c *call) *call {
	if open := q.calls[c.key]; open != nil && (open.state != ended || open.subject == c.subject) && !open.isVoid() {
		return open
	}
	c.done, c.wakes, c.waiting = make(chan struct{}), map[caller]func(){}, map[caller]int{}
	c.entered = time.Now()
	q.waiting++
	q.calls[c.key] = c
	if len(q.queued[c.namespace]) == 0 {
		q.order = append(q.order, c.namespace)
	}
	q.queued[c.namespace] = append(q.queued[c.namespace], c)
	return c
}

// next gives a slot to the first call of the next namespace, except calls for a busy volume; nil
// where no call can have it.
func (q *backendQueue) next() *call {
	for i, namespace := range q.order {
		calls := q.queued[namespace]
		at := slices.IndexFunc(calls, func(c *call) bool { return !q.busy[c.id] })
		if at < 0 {
			continue
		}
		c := calls[at]
		q.order = slices.Delete(q.order, i, i+1)
		q.queued[namespace] = without(calls, at)
		if len(calls) == 1 {
			delete(q.queued, namespace)
		} else {
			q.order = append(q.order, namespace)
		}
		q.takeSlot(c)
		return c
	}
	return nil
}

// without removes one call from a list; usually the first.
func without(calls []*call, at int) []*call {
	if at == 0 {
		return calls[1:]
	}
	return slices.Delete(calls, at, at+1)
}

func (q *backendQueue) takeSlot(c *call) {
	q.inUse++
	q.waiting--
	if c.id != "" {
		q.busy[c.id] = true
	}
}

// end frees the call's slot, unless it is free already, and its volume.
func (q *backendQueue) end(c *call) {
	if !c.accepted {
		q.inUse--
	}
	delete(q.busy, c.id)
}

// forget drops an answer, unless a caller is about to get it.
func (q *backendQueue) forget(c *call) {
	if q.calls[c.key] == c && len(c.waiting) == 0 {
		delete(q.calls, c.key)
	}
}

// unanswered is the error for the caller of a call without an answer yet.
func (q *backendQueue) unanswered(c *call) error {
	switch {
	case c.state == running || c.state == ended:
		return backend.Queued.Errorf("waiting for %s to answer", q.name)
	case q.busy[c.id]:
		return backend.Queued.Errorf("waiting for another call for volume %s to end", c.id)
	}
	return backend.Queued.Errorf("waiting until %s has fewer than %d calls to answer", q.name, q.slots)
}
