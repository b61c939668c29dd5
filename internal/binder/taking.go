package binder

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/storage/volume"
)

// taking is a reservation: a claim that a worker binds to a version of a volume.
type taking struct {
	seeker
	version string
}

// Take finds the volume for a request and reserves it, until the index sees the volume tied to
// a claim or GiveBack is called. If no volume fits, it returns nil, and the claim is pending
// until it calls Take or Leave again. A claim that takes only its own volume does not become
// pending.
//
// A volume that the claim reserved before and still fits comes first. Then comes a volume with
// a claimRef to it, then the smallest of those that fit. Among equals the oldest comes first,
// then the first by name.
func (x *Index) Take(wish Wish) *corev1.PersistentVolume {
	x.mu.Lock()
	defer x.unlock()
	s := seekerOf(wish)
	offered := x.takeBack(s.claim)
	found := x.findTaken(&s)
	if found == nil {
		found = x.findNamed(&s)
	}
	if found == nil && !wish.onlyOwn() {
		found = x.findFree(&s)
	}
	switch {
	case found != nil:
		x.take(found, &s)
	case !wish.onlyOwn():
		x.waiting.join(&waiter{seeker: s})
	}
	if offered != nil && offered != found {
		x.offer(offered)
	}
	if found == nil {
		return nil
	}
	return found.pv
}

// TakeNamed reserves the volume that the claim names in spec.volumeName. If the claim cannot
// have it, it returns the cause; nil and Fits mean that there is no such volume.
func (x *Index) TakeNamed(wish Wish) (*corev1.PersistentVolume, Cause) {
	x.mu.Lock()
	defer x.unlock()
	s := seekerOf(wish)
	x.leave(s.claim)
	v, exists := x.volumes[wish.Claim.Spec.VolumeName]
	switch {
	case !exists:
		return nil, Fits
	case TiedTo(v.pv, wish.Claim):
		return v.pv, Fits
	case x.heldByOther(v, s.uid):
		return nil, Reserved
	case !x.available(v, s.uid):
		return nil, Taken
	}
	if cause := s.fit(v); !suitsByName(cause) {
		return nil, cause
	}
	x.take(v, &s)
	return v.pv, Fits
}

// GiveBack ends the reservation of Take if the volume was not tied to the claim after all.
func (x *Index) GiveBack(name string, claim types.UID) {
	x.mu.Lock()
	defer x.unlock()
	if x.takers[claim] == name {
		x.letGo(name)
	}
}

// take reserves a volume for a worker. A claim that it was tentatively reserved for looks for
// another.
func (x *Index) take(v *stocked, s *seeker) {
	if s.tiedTo(v.pv) {
		return
	}
	if before, takes := x.takers[s.uid]; takes && before != v.name {
		x.letGo(before)
	}
	x.takers[s.uid] = v.name
	x.taken[v.name] = taking{seeker: *s, version: v.pv.ResourceVersion}
	x.reshelve(v.name)
	if w := x.withdraw(v.name); w != nil {
		x.settle(w)
	}
}

// letGo releases a volume, and offers it to the pending claims.
func (x *Index) letGo(name string) {
	x.release(name)
	if v := x.volumes[name]; v != nil {
		x.offer(v)
	}
}

func (x *Index) release(name string) {
	if by, taken := x.taken[name]; taken {
		delete(x.takers, by.uid)
		delete(x.taken, name)
		x.reshelve(name)
	}
}

// findTaken finds the volume that the claim reserved in an earlier pass. The informer may not
// show the end of that pass yet. It releases a volume that the claim cannot use any more.
func (x *Index) findTaken(s *seeker) *stocked {
	name, takes := x.takers[s.uid]
	if !takes {
		return nil
	}
	if v := x.volumes[name]; s.fit(v) == Fits {
		return v
	}
	x.letGo(name)
	return nil
}

// findNamed finds a volume with a claimRef to the claim. One that a controller tied to it
// already comes first, on any node and in any phase, then the smallest that fits.
func (x *Index) findNamed(s *seeker) *stocked {
	var tied, reserved *stocked
	for _, v := range x.named[s.claim] {
		switch {
		case s.tiedTo(v.pv) && v.pv.Annotations[volume.AnnBoundByController] != "" && s.suitsTied(v):
			tied = first(tied, v)
		case x.available(v, s.uid) && s.fit(v) == Fits:
			reserved = first(reserved, v)
		}
	}
	if tied != nil {
		return tied
	}
	return reserved
}

// suitsTied reports whether the claim can use a volume that a controller tied to it.
func (s *seeker) suitsTied(v *stocked) bool {
	return v.pv.DeletionTimestamp.IsZero() && v.kind.gives(s.kind) == Fits && v.size.compare(s.size) >= 0
}

// findFree finds the smallest volume that no other claim has, or has a better right to.
func (x *Index) findFree(s *seeker) *stocked {
	class := x.classes[s.class]
	if class == nil {
		return nil
	}
	var best *stocked
	class.search(s, func(v *stocked) bool {
		if !x.free(v, s) {
			return false
		}
		best = first(best, v)
		return true
	})
	return best
}

// free reports whether a claim may have a volume that fits it. It may if no claimRef ties the
// volume, no worker binds it, it is not kept for another claim, and no other claim names it.
func (x *Index) free(v *stocked, s *seeker) bool {
	w := x.waiting.offers[v.name]
	return v.pv.Spec.ClaimRef == nil && x.available(v, s.uid) && (w == nil || w.claim == s.claim) && x.askedBy(v, s.uid) == nil
}

func (x *Index) available(v *stocked, claim types.UID) bool {
	by, taken := x.taken[v.name]
	return !taken || by.uid == claim
}

// first returns the one of two volumes that claims take first; a may be nil.
func first(a, b *stocked) *stocked {
	if a == nil || b.before(a) {
		return b
	}
	return a
}

// Promised reports whether a free volume's next phase may be Bound. It may if the volume is
// kept for a claim, is being bound, was tied since, or is not known yet.
func (x *Index) Promised(name string) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	v := x.volumes[name]
	return v == nil || v.promised || v.pv.Spec.ClaimRef != nil && v.pv.Spec.ClaimRef.UID != ""
}
