package persistentvolumeclaim

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/storage/volume"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/stowage-dev/stowage/internal/wake"
)

const (
	// refreshAfter is how soon claims that wait look again what to say after the
	// volumes of their class changed; refreshEach is added for each that waits, so
	// that thousands cost no more than a few.
	refreshAfter = time.Second
	refreshEach  = 50 * time.Millisecond
	// UntilTold is how long a backend is at work before its claim says so.
	UntilTold = 2 * time.Second
	// roomEach is how long claims that wait for room leave each other, and roomRest how
	// long a backend's claims rest at least: agents write about free room at any time.
	roomEach, roomRest = 10 * time.Millisecond, time.Second
)

// refresh says when the claims of a class are to say anew why they wait. All methods
// can be called at once.
type refresh struct {
	clock clock.PassiveClock
	mu    sync.Mutex
	next  map[string]time.Time
}

// left is how long it is until claims of a class begin to look again; zero where
// none is to.
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

// enqueueForRefresh has the claims that wait for volumes of a class look again why:
// none of them gets a changed volume that the index doesn't keep for it, but what
// their conditions tell of it may be wrong now. They look one after another, none
// before quiet is over and all before it has passed a second time: so no event is
// missed while it lasts.
func (r *Reconciler) enqueueForRefresh(pv *corev1.PersistentVolume, queue wake.Queue) {
	class := volume.GetPersistentVolumeClass(pv)
	if r.refresh.left(class) > 0 {
		return
	}
	waiting := r.Index.Waiting(class)
	quiet := refreshAfter + time.Duration(len(waiting))*refreshEach
	for i, claim := range waiting {
		queue.AddAfter(reconcile.Request{NamespacedName: claim}, quiet+quiet*time.Duration(i)/time.Duration(len(waiting)))
	}
	if len(waiting) > 0 {
		r.refresh.set(class, quiet)
	}
}

// patience remembers since when claims wait for what mostly is over soon, so that it
// isn't told, and unsaid again, of each. Its zero value has none. All methods can be
// called at once.
type patience struct {
	clock clock.PassiveClock
	lasts time.Duration
	mu    sync.Mutex
	since map[types.NamespacedName]time.Time
}

// left is how long a claim may still wait without a word.
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
