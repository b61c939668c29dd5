package binder

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/storage/volume"
)

// findFree finds the smallest volume that no other claim has, or has a better right to.
func (x *Index) findFree(s *candidate) *indexedVolume {
	class := x.classes[s.class]
	if class == nil {
		return nil
	}
	var best *indexedVolume
	class.search(s, func(v *indexedVolume) bool {
		if !x.free(v, s) {
			return false
		}
		best = first(best, v)
		return true
	})
	return best
}

// findPreBound finds a volume with a claimRef to the claim. One that a controller tied to it
// already comes first, on any node and in any phase, then the smallest that fits.
func (x *Index) findPreBound(s *candidate) *indexedVolume {
	var tied, reserved *indexedVolume
	for v := x.preBoundVolumes[s.claim]; v != nil; v = v.next {
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

// free reports whether a claim may have a volume that fits it. It may if no claimRef ties the
// volume, no worker binds it, it is not reserved for another claim, and no other claim names
// it.
func (x *Index) free(v *indexedVolume, s *candidate) bool {
	w := x.pending.tentative[v.name()]
	return v.pv.Spec.ClaimRef == nil && x.available(v, s.uid) && (w == nil || w.claim == s.claim) && x.preBoundBy(v, s.uid) == nil
}

func (x *Index) available(v *indexedVolume, claim types.UID) bool {
	by, reserved := x.reservations[v.name()]
	return !reserved || by.uid == claim
}

// first returns the one of two volumes that claims take first; a may be nil.
func first(a, b *indexedVolume) *indexedVolume {
	if a == nil || b.before(a) {
		return b
	}
	return a
}

// suitsTied reports whether the claim can use a volume that a controller tied to it.
func (s *candidate) suitsTied(v *indexedVolume) bool {
	return v.pv.DeletionTimestamp.IsZero() && v.kind.Value().mismatch(s.kind) == Fits && v.size.compare(s.size) >= 0
}

// preBoundAt returns the position of the claim among those that name a volume, or -1.
func (x *Index) preBoundAt(volume string, claim types.UID) int {
	return slices.IndexFunc(x.preBoundClaims[volume], func(other *corev1.PersistentVolumeClaim) bool { return other.UID == claim })
}

// preBoundBy returns another claim that names the volume and has it, or could have it.
func (x *Index) preBoundBy(v *indexedVolume, claim types.UID) *corev1.PersistentVolumeClaim {
	for _, other := range x.preBoundClaims[v.name()] {
		if other.UID != claim && (Completed(other) || suitsByName(Fit(v.pv, ClaimRequest{Claim: other}))) {
			return other
		}
	}
	return nil
}

// boundToOther reports whether another claim is bound to the volume. The volume may have lost
// its claimRef by mistake.
func (x *Index) boundToOther(v *indexedVolume, claim types.UID) bool {
	return slices.ContainsFunc(x.preBoundClaims[v.name()], func(other *corev1.PersistentVolumeClaim) bool {
		return other.UID != claim && Completed(other)
	})
}

// suitsByName reports whether a claim that names its volume may have it despite the cause.
// Such a claim need not match labels: its spec.volumeName overrides the selector.
func suitsByName(cause Cause) bool { return cause == Fits || cause == OtherLabels }
