package controllers

import (
	"context"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/storage/volume"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// waking adds claims to the queue from outside of any event: those for which the
// index found a volume that another claim let go. Its zero value wakes nobody.
type waking struct{ queue atomic.Pointer[queue] }

// start is the source that knows the queue. Nobody waits before it runs, because
// no worker does.
func (w *waking) start(_ context.Context, queue queue) error {
	w.queue.Store(&queue)
	return nil
}

func (w *waking) add(claim types.NamespacedName) {
	if queue := w.queue.Load(); queue != nil {
		(*queue).Add(reconcile.Request{NamespacedName: claim})
	}
}

const (
	// refreshAfter is how soon claims that wait look again what to say after the
	// volumes of their class changed; refreshEach is added for each that waits, so
	// that thousands cost no more than a few.
	refreshAfter = time.Second
	refreshEach  = 50 * time.Millisecond
)

// refresh says when the claims of a class were last told to say anew why they wait.
// Only the informer of volumes uses it, from one goroutine.
type refresh struct {
	clock clock.PassiveClock
	next  map[string]time.Time
}

// isSet tells whether claims of a class look again anyway, all of them later than
// now.
func (r *refresh) isSet(class string) bool { return r.clock.Now().Before(r.next[class]) }

func (r *refresh) set(class string, within time.Duration) {
	if r.next == nil {
		r.next = map[string]time.Time{}
	}
	r.next[class] = r.clock.Now().Add(within)
}

// enqueueForRefresh has the claims that wait for volumes of a class look again why:
// none of them gets a changed volume that the index doesn't keep for it, but what
// their conditions tell of it may be wrong now. They look one after another, in the
// second half of the time that is set for all of them.
func (r *PersistentVolumeClaimReconciler) enqueueForRefresh(pv *corev1.PersistentVolume, queue queue) {
	class := volume.GetPersistentVolumeClass(pv)
	if r.refresh.isSet(class) {
		return
	}
	waiting := r.index.Waiting(class)
	half := refreshAfter + time.Duration(len(waiting))*refreshEach
	for i, claim := range waiting {
		queue.AddAfter(reconcile.Request{NamespacedName: claim}, half+half*time.Duration(i)/time.Duration(len(waiting)))
	}
	if len(waiting) > 0 {
		r.refresh.set(class, half)
	}
}
