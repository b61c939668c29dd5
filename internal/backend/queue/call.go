package queue

import (
	"context"
	"time"

	"github.com/stowage-dev/stowage/internal/backend"
)

// verb is what is asked of a backend, as it is told to people.
type verb string

const (
	making  verb = "making"
	removal verb = "removal"
	growth  verb = "growth"
	// recycling empties what a volume leads to.
	recycling verb = "recycling"
	// retention notes that a volume is kept.
	retention verb = "retention"
	// attaching and detaching are told apart by their node, too.
	attaching verb = "attaching"
	detaching verb = "detaching"
	// inspection finds out whether a node has a volume.
	inspection verb = "inspection"
	// observation is of a node, and of no volume.
	observation verb = "observation"
)

// key tells calls apart that can be open at the same time. Those for one volume run
// one after the other all the same.
type key struct{ id, node string }

// asker is who waits for an answer: a verb stands for the one who asks that of a
// volume; where many ask the same, each stands for itself.
type asker any

// question is a call, to be told from others for the same volume.
type question struct {
	verb verb
	// version is that of the StorageBackend that is asked.
	version string
	// wanted is what the answer depends on.
	wanted wanted
}

// state is how far a call is.
type state int

const (
	queued state = iota
	// granted calls have their turn; whoever asked is to come for it.
	granted
	begun
	ended
)

// call is a question on its way to an answer.
type call struct {
	question question
	key
	// namespace is what calls take turns by: a claim's, or a node.
	namespace string
	run       func(context.Context) (any, error)

	state state
	// wakes tell those who asked that it is their turn or that there is an answer.
	wakes map[asker]func()
	// waiting are those who stay for the answer, and how many of each.
	waiting map[asker]int
	done    chan struct{}
	answer  any
	err     error
	// released says that the storage has taken the call: it doesn't count among those that
	// run.
	released bool
	// outdated says that something happened to the volume since the call began.
	outdated bool
}

// void tells of an answer that says how far things are, and doesn't know the latest.
func (c *call) void() bool {
	return c.state == ended && c.outdated && backend.Unfinished(c.err)
}

// keeps is how long the answer waits for a caller that doesn't come.
func (c *call) keeps() time.Duration {
	if c.question.verb == observation || c.question.verb == inspection {
		return keepObserved
	}
	return keep
}

func (c *call) wakeAll() {
	for _, wake := range c.wakes {
		wake()
	}
}

// asker is who asks a call's question through a backend that is served.
func (c *call) asker(on *served) asker {
	if c.question.verb == observation {
		return on
	}
	return c.question.verb
}

// stay and leave count who waits for the answer.
func (c *call) stay(who asker) { c.waiting[who]++ }

func (c *call) leave(who asker) {
	c.waiting[who]--
	if c.waiting[who] == 0 {
		delete(c.waiting, who)
	}
}

func (c *call) unanswered(l *lane) error {
	switch {
	case c.state == begun || c.state == ended:
		return backend.Queued.Errorf("waiting for %s to answer", l.name)
	case l.busy[c.id]:
		return backend.Queued.Errorf("waiting for what goes on with volume %s to end", c.id)
	}
	return backend.Queued.Errorf("waiting for a turn: %s is asked for %d volumes at once", l.name, l.limit)
}
