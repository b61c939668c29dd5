package nfs

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"time"
)

// turnPatience is how long a volume waits for another one's turn at its share.
const turnPatience = 10 * time.Second

// errTurn says that something else is still at work on a share.
var errTurn = errors.New("an earlier mount or unmount of the same share isn't over: does its server answer?")

// stages is where shares are mounted for the whole node, and whose turn it is at
// each. A turn lasts until the kernel is done, however long that takes.
type stages struct {
	folder string
	mu     sync.Mutex
	turns  map[string]*turn
}

// turn is a token that one at a time has; wanted counts who has it or waits.
type turn struct {
	token  chan struct{}
	wanted int
}

func newStages(folder string) *stages {
	return &stages{folder: folder, turns: map[string]*turn{}}
}

// path is where a share is mounted for the whole node.
func (s *stages) path(key string) string { return filepath.Join(s.folder, key) }

// acquire waits, for a while, for the turn at a share.
func (s *stages) acquire(ctx context.Context, key string) (release func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, turnPatience)
	defer cancel()
	at := s.want(key)
	select {
	case at.token <- struct{}{}:
		return func() { <-at.token; s.leave(key) }, nil
	case <-ctx.Done():
		s.leave(key)
		return nil, errTurn
	}
}

func (s *stages) want(key string) *turn {
	s.mu.Lock()
	defer s.mu.Unlock()
	at, known := s.turns[key]
	if !known {
		at = &turn{token: make(chan struct{}, 1)}
		s.turns[key] = at
	}
	at.wanted++
	return at
}

func (s *stages) leave(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turns[key].wanted--
	if s.turns[key].wanted == 0 {
		delete(s.turns, key)
	}
}
