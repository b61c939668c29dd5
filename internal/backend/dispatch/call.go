package dispatch

import (
	"context"

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
)

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
	question  question
	id        string
	namespace string
	run       func(context.Context) (any, error)

	state state
	// wakes tell those who asked, by their verb, that it is their turn or that
	// there is an answer.
	wakes map[verb]func()
	// waiting is how many stay for the answer.
	waiting int
	done    chan struct{}
	answer  any
	err     error
	// outdated says that something happened to the volume since the call began.
	outdated bool
}

// void tells of an answer that says how far things are, and doesn't know the latest.
func (c *call) void() bool {
	return c.state == ended && c.outdated && backend.Unfinished(c.err)
}

func (c *call) wakeAll() {
	for _, wake := range c.wakes {
		wake()
	}
}

func (c *call) unanswered(l *lane) error {
	if c.state == begun || c.state == ended {
		return backend.Queued.Errorf("waiting for %s to answer", l.name)
	}
	return backend.Queued.Errorf("waiting for a turn: %s is asked for %d volumes at once", l.name, l.limit)
}
