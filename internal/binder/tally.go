package binder

import "maps"

// tally counts the volumes of a class by the cause why a claim cannot have them.
type tally struct {
	counts map[Cause]int
	// owners are claims for which volumes are reserved: all of them, or maxNamed+1.
	owners map[string]bool
	// largest is the largest of those that are too small: the nearest miss.
	largest *stocked
	// chosen are the volumes of any class that are reserved for this claim, each with the
	// cause why it cannot be had.
	chosen map[*stocked]Cause
}

func (x *Index) tally(s *seeker) *tally {
	t := &tally{counts: map[Cause]int{}, owners: map[string]bool{}, chosen: map[*stocked]Cause{}}
	t.addChosen(x.named[s.claim], s)
	class := x.classes[s.class]
	if class == nil {
		return t
	}
	maps.Copy(t.counts, class.lost)
	t.addKept(class.kept, s)
	for _, v := range class.promised {
		cause := v.kind.gives(s.kind)
		if cause == Fits {
			cause = s.fitInKind(v, false)
		}
		x.count(t, v, s, cause)
	}
	for kind, free := range class.free {
		switch cause := kind.gives(s.kind); {
		case cause != Fits:
			t.counts[cause] += free.Len()
		case s.selector == nil && s.node == nil:
			x.addBySize(t, class, kind, s)
		default:
			free.Ascend(func(v *stocked) bool {
				x.count(t, v, s, s.fitInKind(v, false))
				return true
			})
		}
	}
	return t
}

func (t *tally) addChosen(named []*stocked, s *seeker) {
	for _, v := range named {
		if s.chosenFor(v.pv) && v.lost() == Fits {
			t.chosen[v] = s.fit(v)
		}
	}
}

// addKept counts volumes with a claimRef. It reads the owners of only a few: enough to decide
// whether the explanation can name them.
func (t *tally) addKept(kept map[string]*stocked, s *seeker) {
	reserved := len(kept)
	for v := range t.chosen {
		if kept[v.name] == v {
			reserved--
		}
	}
	t.counts[Reserved] += reserved
	for _, v := range kept {
		if len(t.owners) > maxNamed {
			break
		}
		if !s.chosenFor(v.pv) {
			t.own(v.pv.Spec.ClaimRef.Namespace + "/" + v.pv.Spec.ClaimRef.Name)
		}
	}
}

// addBySize counts free volumes of the right kind. Those that are large enough are few:
// another claim names each.
func (x *Index) addBySize(t *tally, class *shelves, of kind, s *seeker) {
	free, large := class.free[of], 0
	free.AscendGreaterOrEqual(stockFrom(s.size), func(v *stocked) bool {
		large++
		x.count(t, v, s, s.fitInKind(v, false))
		return true
	})
	t.counts[TooSmall] += free.Len() - large
	free.DescendLessOrEqual(stockFrom(s.size), func(v *stocked) bool {
		t.missed(v)
		return false
	})
}

func (x *Index) count(t *tally, v *stocked, s *seeker, cause Cause) {
	switch cause {
	case TooSmall:
		t.missed(v)
	case Fits:
		if owner := x.owner(v, s); owner != "" {
			t.own(owner)
			cause = Reserved
		}
	}
	t.counts[cause]++
}

func (t *tally) missed(v *stocked) {
	if t.largest == nil || t.largest.before(v) {
		t.largest = v
	}
}

func (t *tally) own(claim string) {
	if len(t.owners) <= maxNamed {
		t.owners[claim] = true
	}
}

// owner returns the other claim that a volume without a claimRef is about to be bound to, or
// "".
func (x *Index) owner(v *stocked, s *seeker) string {
	if by, taken := x.taken[v.name]; taken && by.uid != s.uid {
		return by.claim.String()
	}
	if w := x.waiting.offers[v.name]; w != nil && w.claim != s.claim {
		return w.claim.String()
	}
	if by := x.askedBy(v, s.uid); by != nil {
		return by.Namespace + "/" + by.Name
	}
	return ""
}
