package binder

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Ask records that a claim names a volume in spec.volumeName. Other claims do not get the
// volume while this claim could have it. Nor do they while this claim is bound to it and the
// volume lost its claimRef by mistake.
func (x *Index) Ask(claim *corev1.PersistentVolumeClaim) {
	x.mu.Lock()
	defer x.unlock()
	name := claim.Spec.VolumeName
	if i := x.asks(name, claim.UID); i >= 0 {
		x.asked[name][i] = claim
	} else {
		x.asked[name] = append(x.asked[name], claim)
	}
	if v := x.volumes[name]; v != nil {
		x.revise(v)
	}
}

// Unask forgets what Ask recorded, and reports whether others may have the volume now.
func (x *Index) Unask(claim *corev1.PersistentVolumeClaim) (freed bool) {
	x.mu.Lock()
	defer x.unlock()
	name := claim.Spec.VolumeName
	i := x.asks(name, claim.UID)
	if i < 0 {
		return false
	}
	if x.asked[name] = slices.Delete(x.asked[name], i, i+1); len(x.asked[name]) == 0 {
		delete(x.asked, name)
	}
	v := x.volumes[name]
	if v != nil {
		x.offer(v)
	}
	return v != nil
}

// asks returns the position of the claim among those that name a volume, or -1.
func (x *Index) asks(volume string, claim types.UID) int {
	return slices.IndexFunc(x.asked[volume], func(other *corev1.PersistentVolumeClaim) bool { return other.UID == claim })
}

// askedBy returns another claim that names the volume and has it, or could have it.
func (x *Index) askedBy(v *stocked, claim types.UID) *corev1.PersistentVolumeClaim {
	for _, other := range x.asked[v.name] {
		if other.UID != claim && (Completed(other) || suitsByName(Fit(v.pv, Wish{Claim: other}))) {
			return other
		}
	}
	return nil
}

// heldByOther reports whether another claim is bound to the volume. The volume may have lost
// its claimRef by mistake.
func (x *Index) heldByOther(v *stocked, claim types.UID) bool {
	return slices.ContainsFunc(x.asked[v.name], func(other *corev1.PersistentVolumeClaim) bool {
		return other.UID != claim && Completed(other)
	})
}

// suitsByName reports whether a claim that names its volume may have it despite the cause.
// Such a claim need not match labels: its spec.volumeName overrides the selector.
func suitsByName(cause Cause) bool { return cause == Fits || cause == OtherLabels }
