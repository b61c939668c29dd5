package binder

import "maps"

// tally counts the volumes of a class by the cause why a claim cannot have them.
type tally struct {
	counts map[Cause]int
	// owners are claims for which volumes are reserved: all of them, or maxNamed+1.
	owners map[string]bool
	// largest is the largest of those that are too small: the nearest miss.
	largest *indexedVolume
	// reserved are the volumes of any class that are reserved for this claim, each with the
	// cause why it cannot be had.
	reserved map[*indexedVolume]Cause
}

func (x *Index) tally(s *candidate) *tally {
	t := &tally{counts: map[Cause]int{}, owners: map[string]bool{}, reserved: map[*indexedVolume]Cause{}}
	t.addReserved(x.preBoundVolumes[s.claim], s)
	class := x.classes[s.class]
	if class == nil {
		return t
	}
	maps.Copy(t.counts, class.unusable)
	t.addClaimed(class, s)
	for _, v := range class.reserved {
		cause := v.kind.Value().mismatch(s.kind)
		if cause == Fits {
			cause = s.fitInKind(v, false)
		}
		x.count(t, v, s, cause)
	}
	for kind, free := range class.free {
		switch cause := kind.mismatch(s.kind); {
		case cause != Fits:
			t.counts[cause] += free.Len()
		case s.selector == nil && s.node == nil:
			x.addBySize(t, class, kind, s)
		default:
			free.Ascend(func(v *indexedVolume) bool {
				x.count(t, v, s, s.fitInKind(v, false))
				return true
			})
		}
	}
	return t
}

func (t *tally) addReserved(first *indexedVolume, s *candidate) {
	for v := first; v != nil; v = v.next {
		if s.reservedFor(v.pv) && v.unusable() == Fits {
			t.reserved[v] = s.fit(v)
		}
	}
}

// addClaimed counts volumes with a claimRef. It reads the owners of only a few: enough to decide
// whether the explanation can name them.
func (t *tally) addClaimed(class *classIndex, s *candidate) {
	reserved := len(class.claimed)
	for v := range t.reserved {
		if class.isClaimed(v) {
			reserved--
		}
	}
	t.counts[Reserved] += reserved
	for _, v := range class.claimed {
		if len(t.owners) > maxNamed {
			break
		}
		if !s.reservedFor(v.pv) {
			t.addOwner(v.pv.Spec.ClaimRef.Namespace + "/" + v.pv.Spec.ClaimRef.Name)
		}
	}
}

// addBySize counts free volumes of the right kind. Those that are large enough are few:
// another claim names each.
func (x *Index) addBySize(t *tally, class *classIndex, of kind, s *candidate) {
	free, large := class.free[of], 0
	free.AscendGreaterOrEqual(volumesFrom(s.size), func(v *indexedVolume) bool {
		large++
		x.count(t, v, s, s.fitInKind(v, false))
		return true
	})
	t.counts[TooSmall] += free.Len() - large
	free.DescendLessOrEqual(volumesFrom(s.size), func(v *indexedVolume) bool {
		t.addTooSmall(v)
		return false
	})
}

func (x *Index) count(t *tally, v *indexedVolume, s *candidate, cause Cause) {
	switch cause {
	case TooSmall:
		t.addTooSmall(v)
	case Fits:
		if owner := x.owner(v, s); owner != "" {
			t.addOwner(owner)
			cause = Reserved
		}
	}
	t.counts[cause]++
}

func (t *tally) addTooSmall(v *indexedVolume) {
	if t.largest == nil || t.largest.before(v) {
		t.largest = v
	}
}

func (t *tally) addOwner(claim string) {
	if len(t.owners) <= maxNamed {
		t.owners[claim] = true
	}
}

// owner returns the other claim that a volume without a claimRef is about to be bound to, or
// "".
func (x *Index) owner(v *indexedVolume, s *candidate) string {
	if by, reserved := x.reservations[v.name()]; reserved && by.uid != s.uid {
		return by.claim.String()
	}
	if w := x.pending.tentative[v.name()]; w != nil && w.claim != s.claim {
		return w.claim.String()
	}
	if by := x.preBoundBy(v, s.uid); by != nil {
		return by.Namespace + "/" + by.Name
	}
	return ""
}

// maxNamed is how many claims an explanation names. With more, it only counts.
const maxNamed = 3
