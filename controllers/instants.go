package controllers

import (
	"sync"
	"time"
)

// instants remember when something was, by the name of whom it was about. Their zero
// value is usable.
type instants struct {
	mu    sync.Mutex
	times map[string]time.Time
}

// since returns when it was first, which is now if it wasn't before.
func (i *instants) since(name string, now time.Time) time.Time {
	i.mu.Lock()
	defer i.mu.Unlock()
	if at, known := i.times[name]; known {
		return at
	}
	i.set(name, now)
	return now
}

// note says that it is now.
func (i *instants) note(name string, now time.Time) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.set(name, now)
}

func (i *instants) set(name string, now time.Time) {
	if i.times == nil {
		i.times = map[string]time.Time{}
	}
	i.times[name] = now
}

// last returns when it was last; zero if it never was.
func (i *instants) last(name string) time.Time {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.times[name]
}

// forget says that it is so no longer.
func (i *instants) forget(name string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	delete(i.times, name)
}
