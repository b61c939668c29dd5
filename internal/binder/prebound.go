package binder

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// AddPreBound records that a claim names a volume in spec.volumeName. Other claims do not get the
// volume while this claim could have it. Nor do they while this claim is bound to it and the
// volume lost its claimRef by mistake.
func (x *Index) AddPreBound(claim *corev1.PersistentVolumeClaim) {
	x.mu.Lock()
	defer x.unlock()
	name := claim.Spec.VolumeName
	if i := x.preBoundAt(name, claim.UID); i >= 0 {
		x.requested[name][i] = claim
	} else {
		x.requested[name] = append(x.requested[name], claim)
	}
	if v := x.volumes[name]; v != nil {
		x.recheck(v)
	}
}

// RemovePreBound forgets what AddPreBound recorded, and reports whether other claims may have
// the volume now.
func (x *Index) RemovePreBound(claim *corev1.PersistentVolumeClaim) (freed bool) {
	x.mu.Lock()
	defer x.unlock()
	name := claim.Spec.VolumeName
	i := x.preBoundAt(name, claim.UID)
	if i < 0 {
		return false
	}
	if x.requested[name] = slices.Delete(x.requested[name], i, i+1); len(x.requested[name]) == 0 {
		delete(x.requested, name)
	}
	v := x.volumes[name]
	if v != nil {
		x.assign(v)
	}
	return v != nil
}

// preBoundAt returns the position of the claim among those that name a volume, or -1.
func (x *Index) preBoundAt(volume string, claim types.UID) int {
	return slices.IndexFunc(x.requested[volume], func(other *corev1.PersistentVolumeClaim) bool { return other.UID == claim })
}

// preBoundBy returns another claim that names the volume and has it, or could have it.
func (x *Index) preBoundBy(v *indexedVolume, claim types.UID) *corev1.PersistentVolumeClaim {
	for _, other := range x.requested[v.name] {
		if other.UID != claim && (Completed(other) || suitsByName(Fit(v.pv, ClaimRequest{Claim: other}))) {
			return other
		}
	}
	return nil
}

// boundToOther reports whether another claim is bound to the volume. The volume may have lost
// its claimRef by mistake.
func (x *Index) boundToOther(v *indexedVolume, claim types.UID) bool {
	return slices.ContainsFunc(x.requested[v.name], func(other *corev1.PersistentVolumeClaim) bool {
		return other.UID != claim && Completed(other)
	})
}

// suitsByName reports whether a claim that names its volume may have it despite the cause.
// Such a claim need not match labels: its spec.volumeName overrides the selector.
func suitsByName(cause Cause) bool { return cause == Fits || cause == OtherLabels }
