package controllers

import (
	"context"
	"sync"
	"time"
)

// sharedReadTimeout bounds a read that nobody's context ends.
const sharedReadTimeout = time.Minute

// sharedReadPause is the longest pause between two reads.
const sharedReadPause = time.Second

// sharedReads lets those who ask at the same time share a read of the API server.
// Each gets what was read after it asked, never before: the promise of a read of its
// own. Who asks while a read is under way waits for the next one, together with all
// others who do. What is read is shared, too: nobody may change it.
type sharedReads[Key comparable, Value any] struct {
	read func(context.Context, Key) (Value, error)
	// pause is the longest pause between reads that follow each other; see paced.
	pause time.Duration

	mu    sync.Mutex
	going map[Key]*sharedRead[Value]
}

// sharedRead is one read, under way or to come.
type sharedRead[Value any] struct {
	done  chan struct{}
	value Value
	err   error
	// next is for those who asked while this one was under way.
	next *sharedRead[Value]
}

func newSharedReads[Key comparable, Value any](read func(context.Context, Key) (Value, error)) *sharedReads[Key, Value] {
	return &sharedReads[Key, Value]{read: read, going: map[Key]*sharedRead[Value]{}}
}

// paced has reads that follow each other pause for as long as one takes, so that a costly
// one takes half of the time at most, and more people share it. It is for reads that more
// people wait for than come in that time: others would only wait.
func (s *sharedReads[Key, Value]) paced() *sharedReads[Key, Value] {
	s.pause = sharedReadPause
	return s
}

// get returns what a read gave that began after the call did.
func (s *sharedReads[Key, Value]) get(ctx context.Context, key Key) (value Value, err error) {
	shared := s.join(ctx, key)
	select {
	case <-shared.done:
		return shared.value, shared.err
	case <-ctx.Done():
		return value, ctx.Err()
	}
}

func (s *sharedReads[Key, Value]) join(ctx context.Context, key Key) *sharedRead[Value] {
	s.mu.Lock()
	defer s.mu.Unlock()
	going, under := s.going[key]
	if !under {
		first := &sharedRead[Value]{done: make(chan struct{})}
		s.going[key] = first
		// Whoever asked first may leave before the others.
		go s.run(context.WithoutCancel(ctx), key, first)
		return first
	}
	if going.next == nil {
		going.next = &sharedRead[Value]{done: make(chan struct{})}
	}
	return going.next
}

// run reads until nobody waits any more.
func (s *sharedReads[Key, Value]) run(ctx context.Context, key Key, current *sharedRead[Value]) {
	for current != nil {
		began := time.Now()
		s.finish(ctx, key, current)
		took := time.Since(began)
		if current = s.following(key, current); current != nil {
			<-time.After(min(took, s.pause))
		}
	}
}

func (s *sharedReads[Key, Value]) finish(ctx context.Context, key Key, current *sharedRead[Value]) {
	ctx, cancel := context.WithTimeout(ctx, sharedReadTimeout)
	defer cancel()
	defer close(current.done)
	current.value, current.err = s.read(ctx, key)
}

func (s *sharedReads[Key, Value]) following(key Key, ended *sharedRead[Value]) *sharedRead[Value] {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ended.next == nil {
		delete(s.going, key)
		return nil
	}
	s.going[key] = ended.next
	return ended.next
}
