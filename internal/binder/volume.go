package binder

import (
	"cmp"
	"math"

	"github.com/google/btree"
	corev1 "k8s.io/api/core/v1"
)

const treeDegree = 32

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

// classIndex is the index of one class: the free volumes in order, by kind, and those that no
// other claim gets.
type classIndex struct {
	free map[kind]*btree.BTreeG[*indexedVolume]
	// reserved are the reserved volumes that have no claimRef yet.
	reserved map[string]*indexedVolume
	// claimed are those with a claimRef.
	claimed  map[string]*indexedVolume
	unusable map[Cause]int
}

func newClassIndex() *classIndex {
	return &classIndex{
		free:     map[kind]*btree.BTreeG[*indexedVolume]{},
		reserved: map[string]*indexedVolume{},
		claimed:  map[string]*indexedVolume{},
		unusable: map[Cause]int{},
	}
}

func (s *classIndex) put(v *indexedVolume) {
	switch cause := v.unusable(); {
	case cause != Fits:
		s.unusable[cause]++
	case v.pv.Spec.ClaimRef != nil:
		s.claimed[v.name] = v
	case v.reserved:
		s.reserved[v.name] = v
	default:
		if s.free[v.kind] == nil {
			s.free[v.kind] = btree.NewG(treeDegree, (*indexedVolume).before)
		}
		s.free[v.kind].ReplaceOrInsert(v)
	}
}

func (s *classIndex) remove(v *indexedVolume) {
	switch cause := v.unusable(); {
	case cause != Fits:
		s.unusable[cause]--
	case v.pv.Spec.ClaimRef != nil:
		delete(s.claimed, v.name)
	case v.reserved:
		delete(s.reserved, v.name)
	default:
		s.free[v.kind].Delete(v)
		if s.free[v.kind].Len() == 0 {
			delete(s.free, v.kind)
		}
	}
}

func (s *classIndex) empty() bool {
	return len(s.free) == 0 && len(s.reserved) == 0 && len(s.claimed) == 0 && s.unusable[Deleting] == 0 && s.unusable[Failed] == 0
}

// search visits the free volumes that may fit a candidate, in order within each kind, until
// found returns true in each.
func (s *classIndex) search(candidate *candidate, found func(*indexedVolume) bool) {
	for kind, tree := range s.free {
		if kind.mismatch(candidate.kind) == Fits {
			tree.AscendGreaterOrEqual(volumesFrom(candidate.size), func(v *indexedVolume) bool {
				return candidate.fitInKind(v, false) != Fits || !found(v)
			})
		}
	}
}
