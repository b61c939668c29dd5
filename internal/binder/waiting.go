package binder

import (
	"cmp"
	"math"

	"github.com/google/btree"
	"k8s.io/apimachinery/pkg/types"
)

// waiter is a claim that got no volume.
type waiter struct {
	seeker
	// offer is the volume that is kept for it until it comes; empty while it
	// still waits.
	offer string
}

// before orders waiters so that, going down, volumes are given to the largest first,
// then the oldest, then the first by name.
func (w *waiter) before(other *waiter) bool {
	return cmp.Or(
		w.size.compare(other.size),
		cmp.Compare(other.created, w.created),
		cmp.Compare(other.claim.Namespace, w.claim.Namespace),
		cmp.Compare(other.claim.Name, w.claim.Name),
	) < 0
}

// waitersUpTo stands behind every waiter that asks for no more than this size.
func waitersUpTo(most size) *waiter {
	return &waiter{seeker: seeker{size: most, created: math.MinInt64}}
}

// waitingRoom holds the claims that got no volume, in the order in which a new one
// is given to them.
type waitingRoom struct {
	waiters map[types.NamespacedName]*waiter
	// queues are the waiters without an offer, by class and by the kind of volume
	// that they ask for.
	queues map[string]map[kind]*btree.BTreeG[*waiter]
	// offers are the waiters with one, by volume.
	offers map[string]*waiter
}

func newWaitingRoom() waitingRoom {
	return waitingRoom{
		waiters: map[types.NamespacedName]*waiter{},
		queues:  map[string]map[kind]*btree.BTreeG[*waiter]{},
		offers:  map[string]*waiter{},
	}
}

func (r *waitingRoom) join(w *waiter) {
	r.waiters[w.claim] = w
	if r.queues[w.class] == nil {
		r.queues[w.class] = map[kind]*btree.BTreeG[*waiter]{}
	}
	if r.queues[w.class][w.kind] == nil {
		r.queues[w.class][w.kind] = btree.NewG(treeDegree, (*waiter).before)
	}
	r.queues[w.class][w.kind].ReplaceOrInsert(w)
}

// leave forgets a claim and returns the name of the volume that was kept for it.
func (r *waitingRoom) leave(claim types.NamespacedName) (offer string) {
	w, waits := r.waiters[claim]
	if !waits {
		return ""
	}
	delete(r.waiters, claim)
	if w.offer == "" {
		r.dequeue(w)
	}
	delete(r.offers, w.offer)
	return w.offer
}

// serve keeps a volume for a waiter.
func (r *waitingRoom) serve(w *waiter, v *stocked) {
	w.offer = v.name
	r.waiters[w.claim] = w
	r.offers[v.name] = w
}

// withdraw ends the offer of a volume and returns whose it was: neither waiting
// nor served. Nil where there was none.
func (r *waitingRoom) withdraw(volume string) *waiter {
	w := r.offers[volume]
	if w == nil {
		return nil
	}
	delete(r.offers, volume)
	delete(r.waiters, w.claim)
	w.offer = ""
	return w
}

func (r *waitingRoom) dequeue(w *waiter) {
	queues := r.queues[w.class]
	queues[w.kind].Delete(w)
	if queues[w.kind].Len() == 0 {
		delete(queues, w.kind)
	}
	if len(queues) == 0 {
		delete(r.queues, w.class)
	}
}

// heir is the first of those that wait for such a volume.
func (r *waitingRoom) heir(v *stocked) *waiter {
	var heir *waiter
	for kind, queue := range r.queues[v.class] {
		if v.kind.gives(kind) != Fits {
			continue
		}
		queue.DescendLessOrEqual(waitersUpTo(v.size), func(w *waiter) bool {
			if w.fitInKind(v, false) != Fits {
				return true
			}
			if heir == nil || heir.before(w) {
				heir = w
			}
			return false
		})
	}
	return heir
}

// Leave forgets that a claim waits. What was kept for it is kept for the next.
func (x *Index) Leave(claim types.NamespacedName) {
	x.mu.Lock()
	defer x.unlock()
	x.leave(claim)
}

func (x *Index) leave(claim types.NamespacedName) {
	if offered := x.takeBack(claim); offered != nil {
		x.offer(offered)
	}
}

// takeBack forgets that a claim waits, and returns the volume that was kept for it;
// nil where there was none.
func (x *Index) takeBack(claim types.NamespacedName) *stocked {
	name := x.waiting.leave(claim)
	x.reshelve(name)
	return x.volumes[name]
}

// withdraw ends the offer of a volume and returns whose it was.
func (x *Index) withdraw(name string) *waiter {
	w := x.waiting.withdraw(name)
	x.reshelve(name)
	return w
}

// Waiting are the claims that wait for a volume of a class.
func (x *Index) Waiting(class string) []types.NamespacedName {
	x.mu.Lock()
	defer x.mu.Unlock()
	var claims []types.NamespacedName
	for _, queue := range x.waiting.queues[class] {
		queue.Ascend(func(w *waiter) bool {
			claims = append(claims, w.claim)
			return true
		})
	}
	return claims
}

// offer keeps a volume, where it is free, for the first of those that wait for
// such a one, and wakes it.
func (x *Index) offer(v *stocked) {
	if x.waiting.offers[v.name] != nil || v.lost() != Fits || v.pv.Spec.ClaimRef != nil {
		return
	}
	heir := x.waiting.heir(v)
	if heir == nil || !x.free(v, &heir.seeker) {
		return
	}
	x.waiting.dequeue(heir)
	x.serve(heir, v)
}

// revise looks again at a volume that changed, and at the claim that it was kept
// for.
func (x *Index) revise(v *stocked) {
	w := x.waiting.offers[v.name]
	if w != nil && w.fit(v) == Fits && x.free(v, &w.seeker) {
		return
	}
	x.withdraw(v.name)
	x.offer(v)
	if w != nil {
		x.settle(w)
	}
}

// settle finds another volume for a claim that lost the one which was kept for it,
// or lets it wait again.
func (x *Index) settle(w *waiter) {
	if v := x.findFree(&w.seeker); v != nil {
		x.serve(w, v)
		return
	}
	x.waiting.join(w)
}

// keep keeps a volume for a claim that tried to bind an older version of it, to
// try again.
func (x *Index) keep(v *stocked, s seeker) {
	if x.waiting.waiters[s.claim] == nil && s.fit(v) == Fits && x.free(v, &s) {
		x.serve(&waiter{seeker: s}, v)
	}
}

func (x *Index) serve(w *waiter, v *stocked) {
	x.waiting.serve(w, v)
	x.reshelve(v.name)
	x.woken = append(x.woken, w.claim)
}
