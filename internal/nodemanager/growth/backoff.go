package growth

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// firstGrowthWait is how soon a claim that is about to grow is read again.
	firstGrowthWait = 500 * time.Millisecond
	// lastGrowthWait is how often a mounted claim is read without an event.
	lastGrowthWait = time.Minute
)

// backoff counts how often in a row claims were read, so that they are read less and less often. Its
// zero value is usable.
type backoff struct {
	mu     sync.Mutex
	counts map[string]int
}

// next is when to read again: soon, and then ever later, while a change is expected; rarely
// otherwise.
func (b *backoff) next(key string, expected bool) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !expected {
		delete(b.counts, key)
		return lastGrowthWait
	}
	if b.counts == nil {
		b.counts = map[string]int{}
	}
	b.counts[key]++
	return min(firstGrowthWait<<min(b.counts[key]-1, 16), lastGrowthWait)
}

// forget drops a key.
func (b *backoff) forget(key string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.counts, key)
}

// growable remembers claims, each with its volume. Its zero value is usable.
type growable struct{ volumes sync.Map }

func (s *growable) add(claim types.NamespacedName, volume string) { s.volumes.Store(claim, volume) }

func (s *growable) forget(claim types.NamespacedName) { s.volumes.Delete(claim) }

func (s *growable) has(claim types.NamespacedName, volume string) bool {
	known, has := s.volumes.Load(claim)
	return has && known == volume
}
