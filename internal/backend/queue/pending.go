package queue

import "slices"

// lane holds the calls of one backend.
type lane struct {
	name    string
	limit   int
	running int
	// calls are all that are open, by volume and, of attachments, by node.
	calls map[key]*call
	// busy are the volumes for which a call has its turn or runs.
	busy map[string]bool
	// queues are those that have not begun, by namespace; turns say whose turn it
	// is, so that one namespace's thousand claims don't hold up another's one.
	queues map[string][]*call
	turns  []string
}

func newLane(name string) *lane {
	return &lane{name: name, calls: map[key]*call{}, busy: map[string]bool{}, queues: map[string][]*call{}}
}

// find finds the call that is open for a volume, or queues the one that is given. An
// answer to another question is void: what was asked since may have changed
// everything.
func (l *lane) find(c *call) *call {
	if open := l.calls[c.key]; open != nil && (open.state != ended || open.question == c.question) && !open.void() {
		return open
	}
	c.done, c.wakes, c.waiting = make(chan struct{}), map[asker]func(){}, map[asker]int{}
	l.calls[c.key] = c
	if len(l.queues[c.namespace]) == 0 {
		l.turns = append(l.turns, c.namespace)
	}
	l.queues[c.namespace] = append(l.queues[c.namespace], c)
	return c
}

// next gives the first call of the namespace whose turn it is its turn, past those
// whose volume is busy; nil where none can have it.
func (l *lane) next() *call {
	for turn, namespace := range l.turns {
		queue := l.queues[namespace]
		place := slices.IndexFunc(queue, func(c *call) bool { return !l.busy[c.id] })
		if place < 0 {
			continue
		}
		c := queue[place]
		l.turns = slices.Delete(l.turns, turn, turn+1)
		l.queues[namespace] = without(queue, place)
		if len(queue) == 1 {
			delete(l.queues, namespace)
		} else {
			l.turns = append(l.turns, namespace)
		}
		l.begin(c)
		return c
	}
	return nil
}

// without takes one call out of a queue; most of the time the first.
func without(queue []*call, place int) []*call {
	if place == 0 {
		return queue[1:]
	}
	return slices.Delete(queue, place, place+1)
}

// begin and end count what has its turn or runs.
func (l *lane) begin(c *call) {
	l.running++
	if c.id != "" {
		l.busy[c.id] = true
	}
}

func (l *lane) end(c *call) {
	if !c.released {
		l.running--
	}
	delete(l.busy, c.id)
}

// forget drops an answer.
func (l *lane) forget(c *call) {
	if l.calls[c.key] == c && len(c.waiting) == 0 {
		delete(l.calls, c.key)
	}
}
