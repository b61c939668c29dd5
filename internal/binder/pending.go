package binder

import (
	"cmp"
	"math"

	"github.com/google/btree"
	"k8s.io/apimachinery/pkg/types"
)

// pendingClaim is a claim that got no volume yet.
type pendingClaim struct {
	candidate
	// tentative is the volume that is tentatively reserved for the claim, until Reserve is
	// called for it. Empty: there is none.
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

// pendingClaims holds the pending claims, in the order in which they get a new volume.
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
	w.tentative = v.name()
	r.claims[w.claim] = w
	r.tentative[v.name()] = w
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
func (r *pendingClaims) bestClaim(v *indexedVolume) *pendingClaim {
	var best *pendingClaim
	for kind, queue := range r.queues[v.class()] {
		if v.kind.Value().mismatch(kind) != Fits {
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
