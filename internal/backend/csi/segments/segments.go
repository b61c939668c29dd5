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
	"k8s.io/apimachinery/pkg/labels"
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

// Has reports whether a driver names places on any node.
func Has(registered []storagev1.CSINode, driver string) bool {
	return slices.ContainsFunc(registered, func(node storagev1.CSINode) bool {
		keys, _ := Keys(&node, driver)
		return len(keys) > 0
	})
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

func topologies(all []map[string]string) []*csispec.Topology {
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

// OfNodes are the topologies of all nodes on which a driver is registered, sorted, and that of one node.
func OfNodes(registered []storagev1.CSINode, labelsOf map[string]map[string]string, driver, one string) (all []Segments, ofNode Segments) {
	known := map[string]bool{}
	for i := range registered {
		keys, is := Keys(&registered[i], driver)
		of := Of(labelsOf[registered[i].Name], keys)
		if one != "" && registered[i].Name == one && is {
			ofNode = of
		}
		if name := labels.Set(of).String(); len(of) > 0 && !known[name] {
			known[name] = true
			all = append(all, of)
		}
	}
	slices.SortFunc(all, Segments.Compare)
	return all, ofNode
}

// Placed places a volume in these topologies. The first that is preferred is that of a node or, without
// one, one that the volume's id chooses. It is nil where the node is in none of them.
func Placed(id string, requisite []Segments, ofNode Segments) *backend.Placement {
	if len(requisite) == 0 {
		return &backend.Placement{} // no node has a topology: the driver chooses
	}
	placement := &backend.Placement{First: Chosen(id, requisite)}
	if ofNode != nil {
		placement.First = slices.IndexFunc(requisite, func(s Segments) bool { return s.Within(ofNode) })
	}
	if placement.First < 0 {
		return nil
	}
	for _, of := range requisite {
		placement.Requisite = append(placement.Requisite, of)
	}
	return placement
}

// Requirement is a placement as a driver gets it; nil where the driver chooses.
func Requirement(placement backend.Placement) *csispec.TopologyRequirement {
	all, first := placement.Requisite, placement.First
	if first < 0 || first >= len(all) {
		return nil
	}
	return &csispec.TopologyRequirement{Requisite: topologies(all), Preferred: topologies(slices.Concat(all[first:], all[:first]))}
}
