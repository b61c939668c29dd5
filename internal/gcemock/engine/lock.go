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

// lock waits until all of the keys are free, and returns what releases them.
func (k *keyedLock) lock(keys []string) (unlock func()) {
	keys = slices.Compact(slices.Sorted(slices.Values(keys)))
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
