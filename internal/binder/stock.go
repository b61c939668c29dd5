package binder

import (
	"cmp"
	"math"

	"github.com/google/btree"
	corev1 "k8s.io/api/core/v1"
)

const treeDegree = 32

// stocked is an indexed volume, with all compared fields read once.
type stocked struct {
	pv      *corev1.PersistentVolume
	name    string
	class   string
	kind    kind
	size    size
	created int64
	// promised is true if the volume is reserved: it is being bound, or kept for a claim.
	promised bool
}

func stock(pv *corev1.PersistentVolume) *stocked {
	return &stocked{
		pv:      pv,
		name:    pv.Name,
		class:   classOf(pv),
		kind:    kindOf(pv),
		size:    sizeOf(pv.Spec.Capacity[corev1.ResourceStorage]),
		created: pv.CreationTimestamp.Unix(),
	}
}

// lost returns the cause why no claim at all gets the volume, or Fits.
func (v *stocked) lost() Cause {
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
func (v *stocked) before(other *stocked) bool {
	return cmp.Or(
		v.size.compare(other.size),
		cmp.Compare(v.kind.access.count(), other.kind.access.count()),
		cmp.Compare(v.created, other.created),
		cmp.Compare(v.name, other.name),
	) < 0
}

// stockFrom sorts before every volume of at least this size.
func stockFrom(least size) *stocked { return &stocked{size: least, created: math.MinInt64} }

// shelves is the index of one class: the free volumes in order, by kind, and those that no
// other claim gets.
type shelves struct {
	free map[kind]*btree.BTreeG[*stocked]
	// promised are the volumes that are reserved, and have no claimRef yet.
	promised map[string]*stocked
	// kept are those with a claimRef.
	kept map[string]*stocked
	lost map[Cause]int
}

func newShelves() *shelves {
	return &shelves{
		free:     map[kind]*btree.BTreeG[*stocked]{},
		promised: map[string]*stocked{},
		kept:     map[string]*stocked{},
		lost:     map[Cause]int{},
	}
}

func (s *shelves) put(v *stocked) {
	switch cause := v.lost(); {
	case cause != Fits:
		s.lost[cause]++
	case v.pv.Spec.ClaimRef != nil:
		s.kept[v.name] = v
	case v.promised:
		s.promised[v.name] = v
	default:
		if s.free[v.kind] == nil {
			s.free[v.kind] = btree.NewG(treeDegree, (*stocked).before)
		}
		s.free[v.kind].ReplaceOrInsert(v)
	}
}

func (s *shelves) remove(v *stocked) {
	switch cause := v.lost(); {
	case cause != Fits:
		s.lost[cause]--
	case v.pv.Spec.ClaimRef != nil:
		delete(s.kept, v.name)
	case v.promised:
		delete(s.promised, v.name)
	default:
		s.free[v.kind].Delete(v)
		if s.free[v.kind].Len() == 0 {
			delete(s.free, v.kind)
		}
	}
}

func (s *shelves) empty() bool {
	return len(s.free) == 0 && len(s.promised) == 0 && len(s.kept) == 0 && s.lost[Deleting] == 0 && s.lost[Failed] == 0
}

// search visits the free volumes that may fit a candidate, in order within each kind, until
// found returns true in each.
func (s *shelves) search(seeker *seeker, found func(*stocked) bool) {
	for kind, tree := range s.free {
		if kind.gives(seeker.kind) == Fits {
			tree.AscendGreaterOrEqual(stockFrom(seeker.size), func(v *stocked) bool {
				return seeker.fitInKind(v, false) != Fits || !found(v)
			})
		}
	}
}
