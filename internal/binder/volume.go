package binder

import (
	"cmp"
	"math"

	corev1 "k8s.io/api/core/v1"
)

// indexedVolume is a volume with all compared fields read once.
type indexedVolume struct {
	pv      *corev1.PersistentVolume
	name    string
	class   string
	kind    kind
	size    size
	created int64
	// reserved is true if the volume is being bound, or tentatively reserved for a claim.
	reserved bool
}

func indexVolume(pv *corev1.PersistentVolume) *indexedVolume {
	return &indexedVolume{
		pv:      pv,
		name:    pv.Name,
		class:   classOf(pv),
		kind:    kindOf(pv),
		size:    sizeOf(pv.Spec.Capacity[corev1.ResourceStorage]),
		created: pv.CreationTimestamp.Unix(),
	}
}

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
		cmp.Compare(v.kind.access.count(), other.kind.access.count()),
		cmp.Compare(v.created, other.created),
		cmp.Compare(v.name, other.name),
	) < 0
}

// volumesFrom sorts before every volume of at least this size.
func volumesFrom(least size) *indexedVolume {
	return &indexedVolume{size: least, created: math.MinInt64}
}
