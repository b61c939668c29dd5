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
}

func (c *call) wakeAll() {
	for _, wake := range c.wakes {
		wake()
	}
}

func (c *call) unanswered(l *lane) error {
	if c.state == begun {
		return backend.Queued.Errorf("waiting for StorageBackend %s to answer", l.name)
	}
	return backend.Queued.Errorf("waiting for a turn: StorageBackend %s makes %d volumes at once (maxConcurrentOperations)", l.name, l.limit)
}
