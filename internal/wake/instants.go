package wake

import (
	"sync"
	"time"
)

// Instants records a time for each name. The zero value is usable.
type Instants struct {
	mu    sync.Mutex
	times map[string]time.Time
}

// Since returns the recorded time. If there is none, it records and returns now.
func (i *Instants) Since(name string, now time.Time) time.Time {
	i.mu.Lock()
	defer i.mu.Unlock()
	if at, known := i.times[name]; known {
		return at
	}
	i.set(name, now)
	return now
}

// Note records now.
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

// Last returns the recorded time, or zero if there is none.
func (i *Instants) Last(name string) time.Time {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.times[name]
}

// Forget drops the recorded time.
func (i *Instants) Forget(name string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	delete(i.times, name)
}
