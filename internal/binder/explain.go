package binder

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/component-helpers/storage/volume"
)

// maxNamed is how many claims an explanation names before it only counts.
const maxNamed = 3

// Explain says, for the owner of a claim that got no volume, what was considered
// and why each group of volumes was not given to it. The text depends on nothing
// but the volumes and the claim, so it is the same until one of them changes.
// Contended tells that a volume which fits is just being bound to another claim:
// if that fails nothing else will tell, so the claim does well to ask again.
func (x *Index) Explain(wish Wish) (text string, contended bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	class := volume.GetPersistentVolumeClaimClass(wish.Claim)
	tally := tally{wish: wish, counts: map[Cause]int{}, owners: map[string]bool{}}
	for _, pv := range x.volumes {
		if volume.GetPersistentVolumeClass(pv) == class || ReservedFor(pv, wish.Claim) {
			tally.add(pv, !x.available(pv, wish.Claim), x.askedBy(pv, wish.Claim))
		}
	}
	return tally.text(ofClass(class)), tally.counts[Taken] > 0
}

// tally counts volumes by the cause for which a wish can't have them.
type tally struct {
	wish    Wish
	counts  map[Cause]int
	owners  map[string]bool
	largest int64
}

func (t *tally) add(pv *corev1.PersistentVolume, taken bool, askedBy *corev1.PersistentVolumeClaim) {
	cause := Fit(pv, t.wish)
	switch {
	case cause == Fits && askedBy != nil:
		cause = Reserved
	case cause == Fits && taken:
		cause = Taken
	}
	t.counts[cause]++
	switch {
	case cause == TooSmall:
		t.largest = max(t.largest, capacityOf(pv))
	case cause == Reserved && pv.Spec.ClaimRef != nil:
		t.owners[pv.Spec.ClaimRef.Namespace+"/"+pv.Spec.ClaimRef.Name] = true
	case cause == Reserved && askedBy != nil:
		t.owners[askedBy.Namespace+"/"+askedBy.Name] = true
	}
}

func (t *tally) text(ofClass string) string {
	total := 0
	for _, count := range t.counts {
		total += count
	}
	if total == 0 {
		return "no volume " + ofClass + " exists"
	}
	causes := slices.SortedFunc(maps.Keys(t.counts), func(a, b Cause) int {
		return cmp.Or(cmp.Compare(t.counts[b], t.counts[a]), cmp.Compare(a, b))
	})
	groups := make([]string, 0, len(causes))
	for _, cause := range causes {
		groups = append(groups, fmt.Sprintf("%d %s", t.counts[cause], t.describe(cause)))
	}
	noun := "volumes"
	if total == 1 {
		noun = "volume"
	}
	return fmt.Sprintf("%d %s %s: %s", total, noun, ofClass, strings.Join(groups, ", "))
}

func (t *tally) describe(cause Cause) string {
	claim := t.wish.Claim
	switch cause {
	case Fits:
		return "kept for a claim whose pod has a node"
	case TooSmall:
		return fmt.Sprintf("too small (largest %s, need %s)", Bytes(t.largest), Bytes(RequestOf(claim)))
	case Reserved:
		return "reserved for " + t.ownersText()
	case OtherAccessModes:
		return fmt.Sprintf("without access mode %s", joined(claim.Spec.AccessModes))
	case OtherVolumeMode:
		return fmt.Sprintf("not of volumeMode %s", volumeMode(claim.Spec.VolumeMode))
	case OtherNode:
		return "not usable on node " + t.wish.Node.Name
	default:
		return string(cause)
	}
}

func (t *tally) ownersText() string {
	names := slices.Sorted(maps.Keys(t.owners))
	switch {
	case len(names) == 0:
		return "another claim"
	case len(names) > maxNamed:
		return fmt.Sprintf("%s and %d other claims", strings.Join(names[:maxNamed], ", "), len(names)-maxNamed)
	default:
		return strings.Join(names, ", ")
	}
}

// Bytes writes a size as people write it in claims: 5Gi.
func Bytes(size int64) string {
	return resource.NewQuantity(size, resource.BinarySI).String()
}

func ofClass(class string) string {
	if class == "" {
		return "without a class"
	}
	return "of class " + class
}

func joined(modes []corev1.PersistentVolumeAccessMode) string {
	words := make([]string, 0, len(modes))
	for _, mode := range modes {
		words = append(words, string(mode))
	}
	return strings.Join(words, "+")
}
