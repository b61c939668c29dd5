// Package sharedread lets concurrent callers share a costly read. No caller gets a value that
// was read before its call.
package sharedread

import (
	"context"
	"sync"
	"time"
)

// timeout bounds a read. No caller's context ends it, because others may wait for it.
const timeout = time.Minute

// longestPause is the longest pause between two reads.
const longestPause = time.Second

// Reads lets concurrent callers share a read. Each caller gets a value that was read after its
// call, as with a read of its own. Callers that come while a read is in flight wait for the
// next one and share it. The value is shared, too, and must not be changed.
type Reads[Key comparable, Value any] struct {
	read func(context.Context, Key) (Value, error)
	// pause is the longest pause between reads that follow each other; see Paced.
	pause time.Duration

	mu      sync.Mutex
	current map[Key]*call[Value]
}

// call is a read, in flight or to come.
type call[Value any] struct {
	started bool
	done    chan struct{}
	value   Value
	err     error
	// next is for the callers that came while this one was in flight.
	next *call[Value]
}

// New returns shared reads by key. Read may be called for several keys at once.
func New[Key comparable, Value any](read func(context.Context, Key) (Value, error)) *Reads[Key, Value] {
	return &Reads[Key, Value]{read: read, current: map[Key]*call[Value]{}}
}

// Paced makes a pause between reads that follow each other, as long as the earlier one took,
// and a second at most. So a costly read runs half of the time at most, and more callers share
// it. Reads with few callers would only be delayed.
func (r *Reads[Key, Value]) Paced() *Reads[Key, Value] {
	r.pause = longestPause
	return r
}

// Get returns the value of a read that began after the call did.
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
		// The first caller's context may end before those of the others.
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

// run reads until no caller waits any more.
func (r *Reads[Key, Value]) run(ctx context.Context, key Key, current *call[Value]) {
	for current != nil {
		began := r.begin(current)
		r.finish(ctx, key, current)
		took := time.Since(began)
		if current = r.following(key, current); current != nil && r.pause > 0 {
			<-time.After(min(took, r.pause))
		}
	}
}

// begin closes a read to later callers.
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
