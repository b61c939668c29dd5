package binder

import (
	"slices"

	"github.com/google/btree"
)

// classIndex is the index of one class: the free volumes in order, by kind, and those that no
// other claim gets.
type classIndex struct {
	free map[kind]*btree.BTreeG[*indexedVolume]
	// reserved are the reserved volumes that have no claimRef yet.
	reserved map[string]*indexedVolume
	// claimed are those with a claimRef, each at its place.
	claimed  []*indexedVolume
	unusable map[Cause]int
}

func newClassIndex() *classIndex {
	return &classIndex{
		free:     map[kind]*btree.BTreeG[*indexedVolume]{},
		reserved: map[string]*indexedVolume{},
		unusable: map[Cause]int{},
	}
}

func (s *classIndex) put(v *indexedVolume) {
	kind := v.kind.Value()
	switch cause := v.unusable(); {
	case cause != Fits:
		s.unusable[cause]++
	case v.pv.Spec.ClaimRef != nil:
		v.place = int32(len(s.claimed))
		s.claimed = append(s.claimed, v)
	case v.reserved:
		s.reserved[v.name()] = v
	default:
		if s.free[kind] == nil {
			s.free[kind] = btree.NewG(treeDegree, (*indexedVolume).before)
		}
		s.free[kind].ReplaceOrInsert(v)
	}
}

func (s *classIndex) remove(v *indexedVolume) {
	kind := v.kind.Value()
	switch cause := v.unusable(); {
	case cause != Fits:
		s.unusable[cause]--
	case v.pv.Spec.ClaimRef != nil:
		last := len(s.claimed) - 1
		s.claimed[v.place] = s.claimed[last]
		s.claimed[v.place].place = v.place
		s.claimed = slices.Delete(s.claimed, last, last+1)
	case v.reserved:
		delete(s.reserved, v.name())
	default:
		s.free[kind].Delete(v)
		if s.free[kind].Len() == 0 {
			delete(s.free, kind)
		}
	}
}

// isClaimed reports whether a volume has a claimRef, and may be had by its claim.
func (s *classIndex) isClaimed(v *indexedVolume) bool {
	return int(v.place) < len(s.claimed) && s.claimed[v.place] == v
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

const treeDegree = 32
