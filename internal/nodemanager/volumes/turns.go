package volumes

import (
	"context"
	"sync"
)

// Turns lets one at a time work on what several pods of the node share: the place
// where a volume is mounted once for all of them. A turn lasts until the kernel is
// done, however long that takes. Its zero value is usable.
type Turns struct {
	mu    sync.Mutex
	turns map[string]*turn
}

// turn is a token that one at a time has; wanted counts who has it or waits.
type turn struct {
	token  chan struct{}
	wanted int
}

// Acquire waits for the turn at a key, until the context ends.
func (t *Turns) Acquire(ctx context.Context, key string) (release func(), err error) {
	at := t.want(key)
	select {
	case at.token <- struct{}{}:
		return func() { <-at.token; t.leave(key) }, nil
	case <-ctx.Done():
		t.leave(key)
		return nil, ctx.Err()
	}
}

func (t *Turns) want(key string) *turn {
	t.mu.Lock()
	defer t.mu.Unlock()
	at, known := t.turns[key]
	if !known {
		at = &turn{token: make(chan struct{}, 1)}
		if t.turns == nil {
			t.turns = map[string]*turn{}
		}
		t.turns[key] = at
	}
	at.wanted++
	return at
}

func (t *Turns) leave(key string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.turns[key].wanted--
	if t.turns[key].wanted == 0 {
		delete(t.turns, key)
	}
}
