// Package sharedread lets many who need the same costly read at the same time share it,
// without anybody being given what was read before they asked.
package sharedread

import (
	"context"
	"sync"
	"time"
)

// timeout bounds a read that nobody's context ends.
const timeout = time.Minute

// longestPause is the longest pause between two reads.
const longestPause = time.Second

// Reads lets those who ask at the same time share a read. Each gets what was read after
// it asked, never before: the promise of a read of its own. Who asks while a read is under
// way waits for the next one, together with all others who do. What is read is shared,
// too: nobody may change it.
type Reads[Key comparable, Value any] struct {
	read func(context.Context, Key) (Value, error)
	// pause is the longest pause between reads that follow each other; see Paced.
	pause time.Duration

	mu      sync.Mutex
	current map[Key]*call[Value]
}

// one is a read, under way or to come.
type call[Value any] struct {
	started bool
	done    chan struct{}
	value   Value
	err     error
	// next is for those who asked while this one was under way.
	next *call[Value]
}

// New returns reads of what keys stand for, by a function that may be called for several
// keys at once.
func New[Key comparable, Value any](read func(context.Context, Key) (Value, error)) *Reads[Key, Value] {
	return &Reads[Key, Value]{read: read, current: map[Key]*call[Value]{}}
}

// Paced has reads that follow each other pause for as long as one takes, so that a costly
// one takes half of the time at most, and more people share it. It is for reads that more
// people wait for than come in that time: others would only wait.
func (r *Reads[Key, Value]) Paced() *Reads[Key, Value] {
	r.pause = longestPause
	return r
}

// Get returns what a read gave that began after the call did.
func (r *Reads[Key, Value]) Get(ctx context.Context, key Key) (value Value, err error) {
	shared := r.join(ctx, key)
	select {
	case <-shared.done:
		return shared.value, shared.err
	case <-ctx.Done():
		return value, ctx.Err()
	}
}

func (r *Reads[Key, Value]) join(ctx context.Context, key Key) *call[Value] {
	r.mu.Lock()
	defer r.mu.Unlock()
	current, found := r.current[key]
	if !found {
		first := &call[Value]{done: make(chan struct{})}
		r.current[key] = first
		// Whoever asked first may leave before the others.
		go r.run(context.WithoutCancel(ctx), key, first)
		return first
	}
	if !current.started {
		return current
	}
	if current.next == nil {
		current.next = &call[Value]{done: make(chan struct{})}
	}
	return current.next
}

// run reads until nobody waits any more.
func (r *Reads[Key, Value]) run(ctx context.Context, key Key, current *call[Value]) {
	for current != nil {
		began := r.begin(current)
		r.finish(ctx, key, current)
		took := time.Since(began)
		if current = r.following(key, current); current != nil {
			<-time.After(min(took, r.pause))
		}
	}
}

// begin closes a read to those who ask from now on.
func (r *Reads[Key, Value]) begin(current *call[Value]) time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	current.started = true
	return time.Now()
}

func (r *Reads[Key, Value]) finish(ctx context.Context, key Key, current *call[Value]) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	defer close(current.done)
	current.value, current.err = r.read(ctx, key)
}

func (r *Reads[Key, Value]) following(key Key, ended *call[Value]) *call[Value] {
	r.mu.Lock()
	defer r.mu.Unlock()
	if ended.next == nil {
		delete(r.current, key)
		return nil
	}
	r.current[key] = ended.next
	return ended.next
}
