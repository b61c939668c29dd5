package binder

import (
	"cmp"
	"unique"

	corev1 "k8s.io/api/core/v1"
)

// indexedVolume is a volume with the fields that cost time to compare read once. There are as many as the cluster has
// volumes: each takes 48 bytes, and what is found in pv at once is left there.
type indexedVolume struct {
	pv   *corev1.PersistentVolume
	kind unique.Handle[kind]
	size size
	// next is another volume whose claimRef names the same claim.
	next *indexedVolume
	// place is the volume's index in the claimed ones of its class.
	place int32
	// reserved is true if the volume is being bound, or tentatively reserved for a claim.
	reserved bool
}

func indexVolume(pv *corev1.PersistentVolume) *indexedVolume {
	return &indexedVolume{pv: pv, kind: unique.Make(kindOf(pv)), size: sizeOf(pv.Spec.Capacity[corev1.ResourceStorage])}
}

func (v *indexedVolume) name() string { return v.pv.Name }

func (v *indexedVolume) class() string { return classOf(v.pv) }

// unusable returns the cause why no claim at all gets the volume, or Fits.
func (v *indexedVolume) unusable() Cause {
	switch {
	case !v.pv.DeletionTimestamp.IsZero():
		return Deleting
	case v.pv.Status.Phase == corev1.VolumeFailed:
		return Failed
	}
	return Fits
}

// before orders volumes as claims take them: the smallest, that with the fewest access modes,
// the oldest, the first by name.
func (v *indexedVolume) before(other *indexedVolume) bool {
	return cmp.Or(
		v.size.compare(other.size),
		cmp.Compare(v.kind.Value().access.count(), other.kind.Value().access.count()),
		cmp.Compare(v.pv.CreationTimestamp.Unix(), other.pv.CreationTimestamp.Unix()),
		cmp.Compare(v.name(), other.name()),
	) < 0
}

// noVolume has no access mode, no time and no name.
var noVolume = indexVolume(&corev1.PersistentVolume{})

// volumesFrom sorts before every volume of at least this size.
func volumesFrom(least size) *indexedVolume {
	return &indexedVolume{pv: noVolume.pv, kind: noVolume.kind, size: least}
}
