package binder

import (
	"cmp"
	"math"

	"github.com/google/btree"
	"k8s.io/apimachinery/pkg/types"
)

// pendingClaim is a claim without a volume.
type pendingClaim struct {
	candidate
	// tentative is the volume that is tentatively reserved for the claim, until it calls Reserve.
	// Empty: there is none.
	tentative string
}

// before orders pending claims. A descending walk serves the largest first, then the oldest,
// then the first by name.
func (w *pendingClaim) before(other *pendingClaim) bool {
	return cmp.Or(
		w.size.compare(other.size),
		cmp.Compare(other.created, w.created),
		cmp.Compare(other.claim.Namespace, w.claim.Namespace),
		cmp.Compare(other.claim.Name, w.claim.Name),
	) < 0
}

// claimsUpTo sorts after every pending claim that requests no more than this size.
func claimsUpTo(most size) *pendingClaim {
	return &pendingClaim{candidate: candidate{size: most, created: math.MinInt64}}
}

// pendingClaims holds the claims without a volume, in the order in which they get a new volume.
type pendingClaims struct {
	claims map[types.NamespacedName]*pendingClaim
	// queues are the claims without a tentative reservation, by class and requested kind.
	queues map[string]map[kind]*btree.BTreeG[*pendingClaim]
	// tentative are the claims with a tentative reservation, by volume.
	tentative map[string]*pendingClaim
}

func newPendingClaims() pendingClaims {
	return pendingClaims{
		claims:    map[types.NamespacedName]*pendingClaim{},
		queues:    map[string]map[kind]*btree.BTreeG[*pendingClaim]{},
		tentative: map[string]*pendingClaim{},
	}
}

func (r *pendingClaims) add(w *pendingClaim) {
	r.claims[w.claim] = w
	if r.queues[w.class] == nil {
		r.queues[w.class] = map[kind]*btree.BTreeG[*pendingClaim]{}
	}
	if r.queues[w.class][w.kind] == nil {
		r.queues[w.class][w.kind] = btree.NewG(treeDegree, (*pendingClaim).before)
	}
	r.queues[w.class][w.kind].ReplaceOrInsert(w)
}

// remove forgets a claim and returns the name of the volume that was reserved for it.
func (r *pendingClaims) remove(claim types.NamespacedName) (volume string) {
	w, waits := r.claims[claim]
	if !waits {
		return ""
	}
	delete(r.claims, claim)
	if w.tentative == "" {
		r.dequeue(w)
	}
	delete(r.tentative, w.tentative)
	return w.tentative
}

// setTentative reserves a volume for a pending claim, tentatively.
func (r *pendingClaims) setTentative(w *pendingClaim, v *indexedVolume) {
	w.tentative = v.name
	r.claims[w.claim] = w
	r.tentative[v.name] = w
}

// clearTentative ends the tentative reservation of a volume and returns its claim, which is
// then not pending. It returns nil if there was none.
func (r *pendingClaims) clearTentative(volume string) *pendingClaim {
	w := r.tentative[volume]
	if w == nil {
		return nil
	}
	delete(r.tentative, volume)
	delete(r.claims, w.claim)
	w.tentative = ""
	return w
}

func (r *pendingClaims) dequeue(w *pendingClaim) {
	queues := r.queues[w.class]
	queues[w.kind].Delete(w)
	if queues[w.kind].Len() == 0 {
		delete(queues, w.kind)
	}
	if len(queues) == 0 {
		delete(r.queues, w.class)
	}
}

// bestClaim returns the best pending claim for a volume.
func (r *pendingClaims) best(v *indexedVolume) *pendingClaim {
	var best *pendingClaim
	for kind, queue := range r.queues[v.class] {
		if v.kind.mismatch(kind) != Fits {
			continue
		}
		queue.DescendLessOrEqual(claimsUpTo(v.size), func(w *pendingClaim) bool {
			if w.fitInKind(v, false) != Fits {
				return true
			}
			if best == nil || best.before(w) {
				best = w
			}
			return false
		})
	}
	return best
}

// RemovePending forgets a pending claim. Its volume goes to the next claim.
func (x *Index) RemovePending(claim types.NamespacedName) {
	x.mu.Lock()
	defer x.unlock()
	x.removePending(claim)
}

func (x *Index) removePending(claim types.NamespacedName) {
	if dropped := x.dropPending(claim); dropped != nil {
		x.assign(dropped)
	}
}

// dropPending forgets a pending claim, and returns the volume that was reserved for it, or nil.
func (x *Index) dropPending(claim types.NamespacedName) *indexedVolume {
	name := x.pending.remove(claim)
	x.reindex(name)
	return x.volumes[name]
}

// clearTentative ends the tentative reservation of a volume and returns its claim.
func (x *Index) clearTentative(name string) *pendingClaim {
	w := x.pending.clearTentative(name)
	x.reindex(name)
	return w
}

// Pending returns the pending claims of a class.
func (x *Index) Pending(class string) []types.NamespacedName {
	x.mu.Lock()
	defer x.mu.Unlock()
	var claims []types.NamespacedName
	for _, queue := range x.pending.queues[class] {
		queue.Ascend(func(w *pendingClaim) bool {
			claims = append(claims, w.claim)
			return true
		})
	}
	return claims
}

// assign reserves a free volume tentatively for the best pending claim, and wakes the claim.
func (x *Index) assign(v *indexedVolume) {
	if x.pending.tentative[v.name] != nil || v.unusable() != Fits || v.pv.Spec.ClaimRef != nil {
		return
	}
	best := x.pending.best(v)
	if best == nil || !x.free(v, &best.candidate) {
		return
	}
	x.pending.dequeue(best)
	x.setTentative(best, v)
}

// recheck checks a changed volume again, and the claim that it is tentatively reserved for.
func (x *Index) recheck(v *indexedVolume) {
	w := x.pending.tentative[v.name]
	if w != nil && w.fit(v) == Fits && x.free(v, &w.candidate) {
		return
	}
	x.clearTentative(v.name)
	x.assign(v)
	if w != nil {
		x.reassign(w)
	}
}

// reassign finds another volume for a claim that lost its tentative reservation. If there is
// none, the claim is pending again.
func (x *Index) reassign(w *pendingClaim) {
	if v := x.findFree(&w.candidate); v != nil {
		x.setTentative(w, v)
		return
	}
	x.pending.add(w)
}

// keepForRetry reserves a volume tentatively for a claim that tried to bind an older version of it,
// for a retry.
func (x *Index) keepForRetry(v *indexedVolume, s candidate) {
	if x.pending.claims[s.claim] == nil && s.fit(v) == Fits && x.free(v, &s) {
		x.setTentative(&pendingClaim{candidate: s}, v)
	}
}

func (x *Index) setTentative(w *pendingClaim, v *indexedVolume) {
	x.pending.setTentative(w, v)
	x.reindex(v.name)
	x.woken = append(x.woken, w.claim)
}
