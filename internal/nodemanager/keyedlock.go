package nodemanager

import "sync"

// KeyedLock lets one holder at a time have each key. It never waits: work that
// can't begin now is tried again later, so that a volume that hangs holds up
// nobody but itself. Its zero value is usable.
type KeyedLock struct {
	mu   sync.Mutex
	held map[string]struct{}
}

// TryAcquire takes the key, unless somebody has it. The holder releases it when
// its work is really over, not when it stops waiting for it.
func (l *KeyedLock) TryAcquire(key string) (release func(), acquired bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, taken := l.held[key]; taken {
		return nil, false
	}
	if l.held == nil {
		l.held = map[string]struct{}{}
	}
	l.held[key] = struct{}{}
	return sync.OnceFunc(func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.held, key)
	}), true
}
