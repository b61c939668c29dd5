package binder

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Ask notes that a claim names a volume in spec.volumeName: no claim that takes
// what comes is given the volume while the claim could have it, or has it and the
// volume was untied by mistake.
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

// Unask forgets what Ask noted, and tells whether others may have the volume now.
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

// asks finds the claim among those that name a volume; -1 where it doesn't.
func (x *Index) asks(volume string, claim types.UID) int {
	return slices.IndexFunc(x.asked[volume], func(other *corev1.PersistentVolumeClaim) bool { return other.UID == claim })
}

// askedBy is a claim other than this one that names the volume, and has it or
// could have it.
func (x *Index) askedBy(v *stocked, claim types.UID) *corev1.PersistentVolumeClaim {
	for _, other := range x.asked[v.name] {
		if other.UID != claim && (Completed(other) || suitsByName(Fit(v.pv, Wish{Claim: other}))) {
			return other
		}
	}
	return nil
}

// heldByOther tells whether a claim other than this one is bound to the volume,
// which may have been untied by mistake.
func (x *Index) heldByOther(v *stocked, claim types.UID) bool {
	return slices.ContainsFunc(x.asked[v.name], func(other *corev1.PersistentVolumeClaim) bool {
		return other.UID != claim && Completed(other)
	})
}

// suitsByName tells of a claim that names its volume whether the cause leaves it
// to the claim: whoever wrote the name is not asked for labels too.
func suitsByName(cause Cause) bool { return cause == Fits || cause == OtherLabels }
