package binder

import "k8s.io/apimachinery/pkg/types"

// assign reserves a free volume tentatively for the best pending claim, and wakes the claim.
func (x *Index) assign(v *indexedVolume) {
	if x.pending.tentative[v.name()] != nil || v.unusable() != Fits || v.pv.Spec.ClaimRef != nil {
		return
	}
	best := x.pending.bestClaim(v)
	if best == nil || !x.free(v, &best.candidate) {
		return
	}
	x.pending.dequeue(best)
	x.setTentative(best, v)
}

// recheck checks a changed volume again, and the claim that it is tentatively reserved for.
func (x *Index) recheck(v *indexedVolume) {
	w := x.pending.tentative[v.name()]
	if w != nil && w.fit(v) == Fits && x.free(v, &w.candidate) {
		return
	}
	x.clearTentative(v.name())
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

// keepForRetry reserves a volume tentatively for a claim that tried to bind an older version
// of it.
func (x *Index) keepForRetry(v *indexedVolume, s candidate) {
	if x.pending.claims[s.claim] == nil && s.fit(v) == Fits && x.free(v, &s) {
		x.setTentative(&pendingClaim{candidate: s}, v)
	}
}

func (x *Index) setTentative(w *pendingClaim, v *indexedVolume) {
	x.pending.setTentative(w, v)
	x.reindex(v.name())
	x.woken = append(x.woken, w.claim)
}

// clearTentative ends the tentative reservation of a volume and returns its claim.
func (x *Index) clearTentative(name string) *pendingClaim {
	w := x.pending.clearTentative(name)
	x.reindex(name)
	return w
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

// release ends a reservation, and reserves the volume for a pending claim.
func (x *Index) release(name string) {
	x.endReservation(name)
	if v := x.volumes[name]; v != nil {
		x.assign(v)
	}
}

func (x *Index) endReservation(name string) {
	if by, reserved := x.reservations[name]; reserved {
		delete(x.reservedBy, by.uid)
		delete(x.reservations, name)
		x.reindex(name)
	}
}
