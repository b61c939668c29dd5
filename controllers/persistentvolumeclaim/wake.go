package persistentvolumeclaim

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
)

const (
	// refreshAfter is the delay after a change of a class's volumes, before pending claims
	// check again what to report. refreshEach is added for each pending claim, so that
	// thousands cost no more than a few.
	refreshAfter = time.Second
	refreshEach  = 50 * time.Millisecond
	// UntilReported is how long a backend works before the claim's condition says so.
	UntilReported = 2 * time.Second
	// roomEach is the interval between claims that wait for free space, and roomRest the
	// minimum for a backend's round. Agents may report free space at any time.
	roomEach, roomRest = 10 * time.Millisecond, time.Second
)

// refresh stores when the claims of a class report again why they wait. All methods can be
// called concurrently.
type refresh struct {
	clock clock.PassiveClock
	mu    sync.Mutex
	next  map[string]time.Time
}

// left returns the time until the claims of a class begin to check again; zero if none will.
func (r *refresh) left(class string) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	left := r.next[class].Sub(r.clock.Now())
	if left <= 0 {
		delete(r.next, class)
	}
	return max(0, left)
}

func (r *refresh) set(class string, within time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.next == nil {
		r.next = map[string]time.Time{}
	}
	r.next[class] = r.clock.Now().Add(within)
}

// patience records since when claims wait for something that is usually short. Their
// conditions then need not change twice. The zero value has no patience. All methods can be
// called concurrently.
type patience struct {
	clock clock.PassiveClock
	lasts time.Duration
	mu    sync.Mutex
	since map[types.NamespacedName]time.Time
}

// left returns how long a claim may still wait without a condition.
func (p *patience) left(of types.NamespacedName) time.Duration {
	if p.lasts == 0 {
		return 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	since, waits := p.since[of]
	if !waits {
		since = p.clock.Now()
		if p.since == nil {
			p.since = map[types.NamespacedName]time.Time{}
		}
		p.since[of] = since
	}
	return max(0, since.Add(p.lasts).Sub(p.clock.Now()))
}

// forget ends a wait.
func (p *patience) forget(of types.NamespacedName) {
	if p.lasts == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.since, of)
}
