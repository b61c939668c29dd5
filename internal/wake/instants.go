package wake

import (
	"sync"
	"time"
)

// Instants remember when something was, by the name of whom it was about. Their zero
// value is usable.
type Instants struct {
	mu    sync.Mutex
	times map[string]time.Time
}

// Since returns when it was first, which is now if it wasn't before.
func (i *Instants) Since(name string, now time.Time) time.Time {
	i.mu.Lock()
	defer i.mu.Unlock()
	if at, known := i.times[name]; known {
		return at
	}
	i.set(name, now)
	return now
}

// Note says that it is now.
func (i *Instants) Note(name string, now time.Time) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.set(name, now)
}

func (i *Instants) set(name string, now time.Time) {
	if i.times == nil {
		i.times = map[string]time.Time{}
	}
	i.times[name] = now
}

// Last returns when it was last; zero if it never was.
func (i *Instants) Last(name string) time.Time {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.times[name]
}

// Forget says that it is so no longer.
func (i *Instants) Forget(name string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	delete(i.times, name)
}
