// Package keyed has locks by key: one holder at a time for each disk, volume or directory.
// Components use it where work on one key may hang, and must hold up no other key. It keeps
// memory only for keys that are held or waited for, and knows nothing of what a key means.
package keyed

import (
	"context"
	"fmt"
	"sync"
)

// Locks has a lock for each key. Its zero value is usable. All methods are safe for
// concurrent use. A lock isn't reentrant.
type Locks struct {
	mu   sync.Mutex
	used map[string]*lock
}

// lock is one key's, while it is held or waited for.
type lock struct {
	// held has one element while the lock is held.
	held chan struct{}
	// users is how many hold the lock or wait for it.
	users int
}

// Acquire waits until the key is free, in the order of the calls, and takes it. An error
// wraps the context's: then the key isn't taken. A context that ended before the call takes
// a free key all the same. Release may be called more than once.
func (l *Locks) Acquire(ctx context.Context, key string) (release func(), err error) {
	of := l.use(key)
	select {
	case of.held <- struct{}{}:
		return l.releaseOf(key, of), nil
	default:
	}
	select {
	case of.held <- struct{}{}:
		return l.releaseOf(key, of), nil
	case <-ctx.Done():
		l.leave(key, of)
		return nil, fmt.Errorf("waiting for the lock of %q: %w", key, context.Cause(ctx))
	}
}

// TryAcquire takes the key if it is free. The holder releases it when its work is really
// over, not when it stops waiting for the work. Release may be called more than once.
func (l *Locks) TryAcquire(key string) (release func(), acquired bool) {
	of := l.use(key)
	select {
	case of.held <- struct{}{}:
		return l.releaseOf(key, of), true
	default:
		l.leave(key, of)
		return nil, false
	}
}

func (l *Locks) use(key string) *lock {
	l.mu.Lock()
	defer l.mu.Unlock()
	of := l.used[key]
	if of == nil {
		of = &lock{held: make(chan struct{}, 1)}
		if l.used == nil {
			l.used = map[string]*lock{}
		}
		l.used[key] = of
	}
	of.users++
	return of
}

// leave forgets the lock with its last user. Before that, a new caller must find the same
// lock: with two, a key would have two holders.
func (l *Locks) leave(key string, of *lock) {
	l.mu.Lock()
	defer l.mu.Unlock()
	of.users--
	if of.users == 0 {
		delete(l.used, key)
	}
}

func (l *Locks) releaseOf(key string, of *lock) func() {
	return sync.OnceFunc(func() {
		<-of.held
		l.leave(key, of)
	})
}
