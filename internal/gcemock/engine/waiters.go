package engine

import "sync"

// waiters wakes the calls that wait for operations.
type waiters struct {
	*sync.Mutex
	channels map[string]chan struct{}
}

func newWaiters() waiters { return waiters{Mutex: &sync.Mutex{}, channels: map[string]chan struct{}{}} }

// ended returns a channel that is closed once an operation has ended.
func (w waiters) ended(path string, already bool) <-chan struct{} {
	w.Lock()
	defer w.Unlock()
	channel, found := w.channels[path]
	if !found {
		channel = make(chan struct{})
		if already {
			close(channel)
		} else {
			w.channels[path] = channel
		}
	}
	return channel
}

func (w waiters) wake(path string) {
	w.Lock()
	defer w.Unlock()
	if channel, found := w.channels[path]; found {
		close(channel)
		delete(w.channels, path)
	}
}
