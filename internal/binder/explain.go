package binder

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// maxNamed is how many claims an explanation names before it only counts.
const maxNamed = 3

// Explain says, for the owner of a claim that got no volume, what was considered
// and why each group of volumes was not given to it. The text depends on nothing
// but the volumes and the claims, so it is the same until one of them changes: a
// volume that is just being bound counts as reserved already.
//
// It counts by kind, and looks at single volumes only where a selector or a node
// makes it: thousands of claims may ask.
func (x *Index) Explain(wish Wish) string {
	x.mu.Lock()
	defer x.mu.Unlock()
	s := seekerOf(wish)
	return x.tally(&s).text(wish, ofClass(s.class))
}

func (t *tally) text(wish Wish, class string) string {
	sentences := t.chosenTexts(wish)
	total := 0
	for _, count := range t.counts {
		total += count
	}
	switch {
	case total == 0 && len(sentences) == 0:
		sentences = append(sentences, fmt.Sprintf("no volume %s exists", class))
	case total == 0:
		sentences = append(sentences, fmt.Sprintf("no other volume %s exists", class))
	default:
		sentences = append(sentences, fmt.Sprintf("%d %s %s: %s", total, plural("volume", total), class, strings.Join(t.groups(wish), ", ")))
	}
	return strings.Join(sentences, "; ")
}

// chosenTexts says of each volume that somebody reserved for this claim why it
// isn't bound: no other cause would be looked for first.
func (t *tally) chosenTexts(wish Wish) []string {
	var sentences []string
	for v, cause := range t.chosen {
		if cause != Fits {
			sentences = append(sentences, fmt.Sprintf("volume %s is reserved for this claim, but %s", v.name, describe(cause, wish, v.size)))
		}
	}
	slices.Sort(sentences)
	return sentences
}

// nearest are the causes, the one that is mended most easily first.
var nearest = []Cause{
	Fits, TooSmall, OtherLabels, OtherNode, OtherAttributesClass, OtherAccessModes, OtherVolumeMode, Reserved, Failed, Deleting,
}

// groups are the counts, the largest first and, of equals, the nearest.
func (t *tally) groups(wish Wish) []string {
	causes := slices.SortedFunc(maps.Keys(t.counts), func(a, b Cause) int {
		return cmp.Or(cmp.Compare(t.counts[b], t.counts[a]), cmp.Compare(slices.Index(nearest, a), slices.Index(nearest, b)))
	})
	var groups []string
	for _, cause := range causes {
		switch count := t.counts[cause]; {
		case count == 0:
		case cause == TooSmall:
			groups = append(groups, fmt.Sprintf("%d too small (largest %s: %s, need %s)",
				count, t.largest.size, t.largest.name, Bytes(RequestOf(wish.Claim))))
		case cause == Reserved:
			groups = append(groups, fmt.Sprintf("%d reserved for %s", count, t.ownersText()))
		default:
			groups = append(groups, fmt.Sprintf("%d %s", count, describe(cause, wish, size{})))
		}
	}
	return groups
}

func (t *tally) ownersText() string {
	if len(t.owners) > maxNamed {
		return "other claims"
	}
	return strings.Join(slices.Sorted(maps.Keys(t.owners)), ", ")
}

// describe says what is wrong with a volume for a claim.
func describe(cause Cause, wish Wish, held size) string {
	claim := wish.Claim
	switch cause {
	case Fits:
		return "to be had once the claim's pod has a node"
	case TooSmall:
		return fmt.Sprintf("too small (%s, need %s)", held, Bytes(RequestOf(claim)))
	case OtherAccessModes:
		return "without access mode " + joined(claim.Spec.AccessModes)
	case OtherVolumeMode:
		return "not of volumeMode " + string(volumeMode(claim.Spec.VolumeMode))
	case OtherNode:
		return "not usable on node " + wish.Node.Name
	default:
		return string(cause)
	}
}

func ofClass(class string) string {
	if class == "" {
		return "without a class"
	}
	return "of class " + class
}

func plural(noun string, count int) string {
	if count == 1 {
		return noun
	}
	return noun + "s"
}

func joined(modes []corev1.PersistentVolumeAccessMode) string {
	words := make([]string, 0, len(modes))
	for _, mode := range modes {
		words = append(words, string(mode))
	}
	return strings.Join(words, "+")
}
