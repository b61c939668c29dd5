package binder

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Reserve finds the volume for a request and reserves it, until the index sees the volume tied
// to a claim or Release is called. If no volume fits, it returns nil, and the claim is pending
// until it calls Reserve or RemovePending. A claim that gets only a volume with a claimRef to it
// does not become pending.
//
// A volume that the claim reserved before and still fits comes first. Then comes a volume with
// a claimRef to it, then the smallest of those that fit. Among equals the oldest comes first,
// then the first by name.
func (x *Index) Reserve(request ClaimRequest) *corev1.PersistentVolume {
	x.mu.Lock()
	defer x.unlock()
	s := candidateOf(request)
	dropped := x.dropPending(s.claim)
	found := x.findReserved(&s)
	if found == nil {
		found = x.findPreBound(&s)
	}
	if found == nil && !request.onlyPreBound() {
		found = x.findFree(&s)
	}
	switch {
	case found != nil:
		x.reserve(found, &s)
	case !request.onlyPreBound():
		x.pending.add(&pendingClaim{candidate: s})
	}
	if dropped != nil && dropped != found {
		x.assign(dropped)
	}
	if found == nil {
		return nil
	}
	return found.pv
}

// ReserveNamed reserves the volume that the claim names in spec.volumeName. If the claim cannot
// have it, it returns the cause; nil and Fits mean that there is no such volume.
func (x *Index) ReserveNamed(request ClaimRequest) (*corev1.PersistentVolume, Cause) {
	x.mu.Lock()
	defer x.unlock()
	s := candidateOf(request)
	x.removePending(s.claim)
	v, exists := x.volumes[request.Claim.Spec.VolumeName]
	switch {
	case !exists:
		return nil, Fits
	case TiedTo(v.pv, request.Claim):
		return v.pv, Fits
	case x.boundToOther(v, s.uid):
		return nil, Reserved
	case !x.available(v, s.uid):
		return nil, BeingBound
	}
	if cause := s.fit(v); !suitsByName(cause) {
		return nil, cause
	}
	x.reserve(v, &s)
	return v.pv, Fits
}

// Release ends the reservation of Reserve if the volume was not tied to the claim after all.
func (x *Index) Release(name string, claim types.UID) {
	x.mu.Lock()
	defer x.unlock()
	if x.reservedBy[claim] == name {
		x.release(name)
	}
}

// reserve reserves a volume for a worker. A claim that it was tentatively reserved for gets
// another, or is pending again.
func (x *Index) reserve(v *indexedVolume, s *candidate) {
	if s.tiedTo(v.pv) {
		return
	}
	if before, takes := x.reservedBy[s.uid]; takes && before != v.name() {
		x.release(before)
	}
	x.reservedBy[s.uid] = v.name()
	x.reservations[v.name()] = reservation{candidate: *s, version: v.pv.ResourceVersion}
	x.reindex(v.name())
	if w := x.clearTentative(v.name()); w != nil {
		x.reassign(w)
	}
}

// findReserved finds the volume that the claim reserved in an earlier pass. The informer may
// not show the end of that pass yet. It releases a volume that the claim cannot use any more.
func (x *Index) findReserved(s *candidate) *indexedVolume {
	name, takes := x.reservedBy[s.uid]
	if !takes {
		return nil
	}
	if v := x.volumes[name]; s.fit(v) == Fits {
		return v
	}
	x.release(name)
	return nil
}

// Reserved reports whether a free volume's next phase may be Bound. It may if the volume is
// tentatively reserved, is being bound, was tied since, or is not known yet.
func (x *Index) Reserved(name string) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	v := x.volumes[name]
	return v == nil || v.reserved || v.pv.Spec.ClaimRef != nil && v.pv.Spec.ClaimRef.UID != ""
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

// PreBoundTo returns the claims that name a volume, as AddPreBound recorded them.
func (x *Index) PreBoundTo(volume string) []types.NamespacedName {
	x.mu.Lock()
	defer x.mu.Unlock()
	var claims []types.NamespacedName
	for _, claim := range x.preBoundClaims[volume] {
		claims = append(claims, types.NamespacedName{Namespace: claim.Namespace, Name: claim.Name})
	}
	return claims
}
