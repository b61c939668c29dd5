package engine

import (
	"slices"
	"sync"
)

// keyedLock keeps jobs on the same resources apart. All jobs lock in the order of the
// keys, so that none waits for one that waits for it.
type keyedLock struct {
	mutex sync.Mutex
	held  map[string]chan struct{}
}

// lock waits until all of the keys are free, which are in order and different, and returns what
// releases them.
func (k *keyedLock) lock(keys []string) (unlock func()) {
	for _, key := range keys {
		k.lockOne(key)
	}
	return func() {
		k.mutex.Lock()
		defer k.mutex.Unlock()
		for _, key := range keys {
			close(k.held[key])
			delete(k.held, key)
		}
	}
}

func (k *keyedLock) lockOne(key string) {
	for {
		k.mutex.Lock()
		free, taken := k.held[key]
		if !taken {
			if k.held == nil {
				k.held = map[string]chan struct{}{}
			}
			k.held[key] = make(chan struct{})
			k.mutex.Unlock()
			return
		}
		k.mutex.Unlock()
		<-free
	}
}

// lockFor locks all that a job touches. What a job takes from may change until that is locked, and
// no longer: then it is locked once more.
func (s *Engine) lockFor(job Job) (unlock func()) {
	for {
		paths := s.pathsOf(job)
		unlock = s.busy.lock(paths)
		if slices.Equal(s.pathsOf(job), paths) {
			return unlock
		}
		unlock()
	}
}

// pathsOf are the paths that a job touches, in order.
func (s *Engine) pathsOf(job Job) []string {
	paths := slices.Clone(job.Locks())
	if taker, takes := job.(Taker); takes {
		s.Lock()
		paths = append(paths, taker.Takes(s)...)
		s.Unlock()
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}
