package binder

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Put adds or replaces a volume, which must not be changed from then on: the index finds it by what it has. A free volume is
// tentatively reserved for the largest pending claim that it fits.
func (x *Index) Put(pv *corev1.PersistentVolume) {
	x.mu.Lock()
	defer x.unlock()
	x.remove(pv.Name)
	v := indexVolume(pv)
	v.reserved = x.isReserved(pv.Name)
	x.add(v)
	if by, reserved := x.reservations[pv.Name]; reserved && by.version != pv.ResourceVersion {
		x.endReservation(pv.Name)
		x.keepForRetry(v, by.candidate)
	}
	x.recheck(v)
}

// Remove forgets a volume.
func (x *Index) Remove(name string) {
	x.mu.Lock()
	defer x.unlock()
	x.remove(name)
	x.endReservation(name)
	if w := x.clearTentative(name); w != nil {
		x.reassign(w)
	}
}

// AddPreBound records that a claim names a volume in spec.volumeName. Other claims do not get the
// volume while this claim could have it. The same holds if this claim is bound to it and the volume
// lost its claimRef by mistake.
func (x *Index) AddPreBound(claim *corev1.PersistentVolumeClaim) {
	x.mu.Lock()
	defer x.unlock()
	name := claim.Spec.VolumeName
	if i := x.preBoundAt(name, claim.UID); i >= 0 {
		x.preBoundClaims[name][i] = claim
	} else {
		x.preBoundClaims[name] = append(x.preBoundClaims[name], claim)
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
	if x.preBoundClaims[name] = slices.Delete(x.preBoundClaims[name], i, i+1); len(x.preBoundClaims[name]) == 0 {
		delete(x.preBoundClaims, name)
	}
	v := x.volumes[name]
	if v != nil {
		x.assign(v)
	}
	return v != nil
}

// RemovePending forgets a pending claim. Its volume goes to the next claim.
func (x *Index) RemovePending(claim types.NamespacedName) {
	x.mu.Lock()
	defer x.unlock()
	x.removePending(claim)
}
