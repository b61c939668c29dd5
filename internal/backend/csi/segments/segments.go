// Package segments is the arithmetic of topologies: labels of nodes, from which a volume can be
// reached. The CSI backend calls it. It reads no object, and calls no driver.
package segments

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"maps"
	"slices"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/stowage-dev/stowage/internal/backend"
)

// Most bounds the topologies of a request and of an answer.
const Most = 1000

// Segments are where a volume can be reached from: labels of nodes.
type Segments map[string]string

// Within reports whether all of these labels are among others.
func (s Segments) Within(other Segments) bool {
	for key, value := range s {
		if other[key] != value {
			return false
		}
	}
	return true
}

// Compare orders segments, by the values of their labels.
func (s Segments) Compare(other Segments) int {
	for _, key := range slices.Sorted(maps.Keys(s)) {
		if order := cmp.Or(cmp.Compare(s[key], other[key])); order != 0 {
			return order
		}
	}
	return cmp.Compare(len(s), len(other))
}

// Chosen is the index of one of all, the same for an id while that one is there, and no other comes
// that the id prefers. A repeat of a call then finds what the first call made, also in storage with
// names that are unique in their zones only.
func Chosen(id string, all []Segments) (chosen int) {
	var highest [sha256.Size]byte
	for i, of := range all {
		text := id
		for _, key := range slices.Sorted(maps.Keys(of)) {
			text += "\x00" + key + "\x00" + of[key]
		}
		if sum := sha256.Sum256([]byte(text)); bytes.Compare(sum[:], highest[:]) > 0 {
			chosen, highest = i, sum
		}
	}
	return chosen
}

// Keys are the labels by which a driver names a node's place, if it is registered there.
func Keys(node *storagev1.CSINode, driver string) (keys []string, registered bool) {
	for _, of := range node.Spec.Drivers {
		if of.Name == driver {
			return of.TopologyKeys, true
		}
	}
	return nil, false
}

// Of are a node's labels with these keys; nil where one is missing.
func Of(labels map[string]string, keys []string) Segments {
	of := Segments{}
	for _, key := range keys {
		value, has := labels[key]
		if !has {
			return nil
		}
		of[key] = value
	}
	return of
}

// Allowed are the topologies that a class allows: each combination of the values of a term.
func Allowed(terms []corev1.TopologySelectorTerm) ([]Segments, error) {
	var all []Segments
	for _, term := range terms {
		of := []Segments{{}}
		for _, label := range term.MatchLabelExpressions {
			if len(of)*len(label.Values) > Most {
				return nil, backend.Invalid.Errorf("the allowedTopologies of the class are more than %d: use a class with fewer", Most)
			}
			of = times(of, label)
		}
		all = append(all, of...)
	}
	slices.SortStableFunc(all, Segments.Compare)
	return all, nil
}

func times(of []Segments, label corev1.TopologySelectorLabelRequirement) []Segments {
	var product []Segments
	for _, before := range of {
		for _, value := range label.Values {
			next := maps.Clone(before)
			next[label.Key] = value
			product = append(product, next)
		}
	}
	return product
}

// Topologies are segments as a driver gets them.
func Topologies(all []Segments) []*csispec.Topology {
	var topologies []*csispec.Topology
	for _, of := range all {
		topologies = append(topologies, &csispec.Topology{Segments: of})
	}
	return topologies
}

// Check checks where a driver says that its volume can be reached from.
func Check(topologies []*csispec.Topology) error {
	if len(topologies) > Most {
		return backend.Invalid.Errorf("with %d topologies, more than %d", len(topologies), Most)
	}
	for _, of := range topologies {
		for key, value := range of.GetSegments() {
			if len(validation.IsQualifiedName(key)) > 0 || len(validation.IsValidLabelValue(value)) > 0 {
				return backend.Invalid.Errorf("with the topology %.200q=%.200q, which is no label", key, value)
			}
		}
	}
	return nil
}

// Affinity restricts a volume to the nodes from which the driver says that it can be reached.
func Affinity(topologies []*csispec.Topology) *corev1.VolumeNodeAffinity {
	var terms []corev1.TopologySelectorTerm
	for _, of := range topologies {
		term := corev1.TopologySelectorTerm{}
		for _, key := range slices.Sorted(maps.Keys(of.GetSegments())) {
			term.MatchLabelExpressions = append(term.MatchLabelExpressions,
				corev1.TopologySelectorLabelRequirement{Key: key, Values: []string{of.GetSegments()[key]}})
		}
		if len(term.MatchLabelExpressions) > 0 {
			terms = append(terms, term)
		}
	}
	return backend.AffinityTo(terms)
}
