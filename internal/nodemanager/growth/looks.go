package growth

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// firstLookAgain is how soon a claim is looked at again that is about to grow.
const firstLookAgain = 500 * time.Millisecond

// Looks counts how often in a row something was looked at, so that it is looked at
// less and less often. Its zero value is usable.
type Looks struct {
	mu     sync.Mutex
	counts map[string]int
}

// Next is when to look again: soon, and then ever later, while something is expected;
// rarely otherwise.
func (l *Looks) Next(key string, expected bool) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !expected {
		delete(l.counts, key)
		return lastGrowthWait
	}
	if l.counts == nil {
		l.counts = map[string]int{}
	}
	l.counts[key]++
	return min(firstLookAgain<<min(l.counts[key]-1, 16), lastGrowthWait)
}

// Forget notes that it isn't looked at any more.
func (l *Looks) Forget(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.counts, key)
}

// settled remembers claims, each with its volume. Its zero value is usable.
type settled struct{ volumes sync.Map }

func (s *settled) add(claim types.NamespacedName, volume string) { s.volumes.Store(claim, volume) }

func (s *settled) forget(claim types.NamespacedName) { s.volumes.Delete(claim) }

func (s *settled) has(claim types.NamespacedName, volume string) bool {
	known, has := s.volumes.Load(claim)
	return has && known == volume
}

// lastGrowthWait is how often a volume is looked at that may yet have to grow,
// although nothing is known to have happened to it.
const lastGrowthWait = time.Minute
