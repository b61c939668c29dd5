package binder

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Explain lists, for the owner of an unbound claim, the considered volumes and why each group
// of them does not fit. The text depends only on the volumes and the claims, so it is
// the same until one of them changes. A volume that is being bound already counts as reserved.
//
// It counts by kind, and inspects single volumes only for a selector or a node: there may be
// thousands of unbound claims.
func (x *Index) Explain(request ClaimRequest) string {
	x.mu.Lock()
	defer x.mu.Unlock()
	s := candidateOf(request)
	return x.tally(&s).text(request, ofClass(s.class))
}

func (t *tally) text(request ClaimRequest, class string) string {
	sentences := t.reservedTexts(request)
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
		sentences = append(sentences, fmt.Sprintf("%d %s %s: %s", total, plural("volume", total), class, strings.Join(t.groups(request), ", ")))
	}
	return strings.Join(sentences, "; ")
}

// reservedTexts explains why each volume that is reserved for this claim is not bound. The user
// looks for this cause first.
func (t *tally) reservedTexts(request ClaimRequest) []string {
	var sentences []string
	for v, cause := range t.reserved {
		if cause != Fits {
			sentences = append(sentences, fmt.Sprintf("volume %s is reserved for this claim, but %s", v.name(), describe(cause, request, v.size)))
		}
	}
	slices.Sort(sentences)
	return sentences
}

// nearest are the causes, from the easiest to the hardest to resolve.
var nearest = []Cause{
	Fits, TooSmall, OtherLabels, OtherNode, OtherAttributesClass, OtherAccessModes, OtherVolumeMode, Reserved, Failed, Deleting,
}

// groups are the counts, the largest first and, of equals, the nearest.
func (t *tally) groups(request ClaimRequest) []string {
	causes := slices.SortedFunc(maps.Keys(t.counts), func(a, b Cause) int {
		return cmp.Or(cmp.Compare(t.counts[b], t.counts[a]), cmp.Compare(slices.Index(nearest, a), slices.Index(nearest, b)))
	})
	var groups []string
	for _, cause := range causes {
		switch count := t.counts[cause]; {
		case count == 0:
		case cause == TooSmall:
			groups = append(groups, fmt.Sprintf("%d too small (largest %s: %s, need %s)",
				count, t.largest.size, t.largest.name(), Bytes(RequestOf(request.Claim))))
		case cause == Reserved:
			groups = append(groups, fmt.Sprintf("%d reserved for %s", count, t.ownersText()))
		default:
			groups = append(groups, fmt.Sprintf("%d %s", count, describe(cause, request, size{})))
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

// describe returns why a volume does not suit a claim.
func describe(cause Cause, request ClaimRequest, held size) string {
	claim := request.Claim
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
		return "not usable on node " + request.Node.Name
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
