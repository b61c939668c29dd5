package binder

import "github.com/google/btree"

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

const treeDegree = 32
