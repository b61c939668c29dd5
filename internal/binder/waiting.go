package binder

import (
	"cmp"
	"math"

	"github.com/google/btree"
	"k8s.io/apimachinery/pkg/types"
)

// waiter is a pending claim.
type waiter struct {
	seeker
	// offer is the volume that is tentatively reserved for the claim, until it calls Take.
	// Empty: there is none.
	offer string
}

// before orders pending claims. A descending walk serves the largest first, then the oldest,
// then the first by name.
func (w *waiter) before(other *waiter) bool {
	return cmp.Or(
		w.size.compare(other.size),
		cmp.Compare(other.created, w.created),
		cmp.Compare(other.claim.Namespace, w.claim.Namespace),
		cmp.Compare(other.claim.Name, w.claim.Name),
	) < 0
}

// waitersUpTo sorts after every pending claim that requests no more than this size.
func waitersUpTo(most size) *waiter {
	return &waiter{seeker: seeker{size: most, created: math.MinInt64}}
}

// waitingRoom holds the pending claims, in the order in which they get a new volume.
type waitingRoom struct {
	waiters map[types.NamespacedName]*waiter
	// queues are the claims without a tentative reservation, by class and requested kind.
	queues map[string]map[kind]*btree.BTreeG[*waiter]
	// offers are the claims with a tentative reservation, by volume.
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

// serve reserves a volume for a pending claim, tentatively.
func (r *waitingRoom) serve(w *waiter, v *stocked) {
	w.offer = v.name
	r.waiters[w.claim] = w
	r.offers[v.name] = w
}

// withdraw ends the tentative reservation of a volume and returns its claim, which is then
// neither pending nor served. It returns nil if there was none.
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

// heir returns the best pending claim for a volume.
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

// Leave forgets a pending claim. Its volume goes to the next claim.
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

// takeBack forgets a pending claim, and returns the volume that was kept for it, or nil.
func (x *Index) takeBack(claim types.NamespacedName) *stocked {
	name := x.waiting.leave(claim)
	x.reshelve(name)
	return x.volumes[name]
}

// withdraw ends the tentative reservation of a volume and returns its claim.
func (x *Index) withdraw(name string) *waiter {
	w := x.waiting.withdraw(name)
	x.reshelve(name)
	return w
}

// Waiting returns the claims that are pending for a class.
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

// offer reserves a free volume tentatively for the best pending claim, and wakes the claim.
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

// revise checks a changed volume again, and the claim that it was kept for.
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

// settle finds another volume for a claim that lost its tentative reservation. If there is
// none, the claim is pending again.
func (x *Index) settle(w *waiter) {
	if v := x.findFree(&w.seeker); v != nil {
		x.serve(w, v)
		return
	}
	x.waiting.join(w)
}

// keep reserves a volume tentatively for a claim that tried to bind an older version of it,
// for a retry.
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
