package dispatch

import "slices"

// lane holds the calls of one backend.
type lane struct {
	name    string
	limit   int
	running int
	// calls are all that are open, by volume.
	calls map[string]*call
	// queues are those that have not begun, by namespace; turns say whose turn it
	// is, so that one namespace's thousand claims don't hold up another's one.
	queues map[string][]*call
	turns  []string
}

func newLane(name string) *lane {
	return &lane{name: name, calls: map[string]*call{}, queues: map[string][]*call{}}
}

// find finds the call that is open for a volume, or queues the one that is given. An
// answer to another question is void: what was asked since may have changed
// everything.
func (l *lane) find(c *call) *call {
	if open := l.calls[c.id]; open != nil && (open.state != ended || open.question == c.question) && !open.void() {
		return open
	}
	c.done, c.wakes = make(chan struct{}), map[verb]func(){}
	l.calls[c.id] = c
	if len(l.queues[c.namespace]) == 0 {
		l.turns = append(l.turns, c.namespace)
	}
	l.queues[c.namespace] = append(l.queues[c.namespace], c)
	return c
}

// next takes the first call of the namespace whose turn it is; nil where none
// waits.
func (l *lane) next() *call {
	if len(l.turns) == 0 {
		return nil
	}
	namespace := l.turns[0]
	l.turns = slices.Delete(l.turns, 0, 1)
	queue := l.queues[namespace]
	c := queue[0]
	if len(queue) == 1 {
		delete(l.queues, namespace)
		return c
	}
	l.queues[namespace] = queue[1:]
	l.turns = append(l.turns, namespace)
	return c
}

// forget drops an answer.
func (l *lane) forget(c *call) {
	if l.calls[c.id] == c && c.waiting == 0 {
		delete(l.calls, c.id)
	}
}
