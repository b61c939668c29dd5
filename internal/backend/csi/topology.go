package csi

import (
	"bytes"
	"cmp"
	"context"
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

// maxTopologies bounds the topologies of a request and of an answer.
const maxTopologies = 1000

// segments are where a volume can be reached from: labels of nodes.
type segments map[string]string

func (s segments) within(other segments) bool {
	for key, value := range s {
		if other[key] != value {
			return false
		}
	}
	return true
}

func (s segments) compare(other segments) int {
	for _, key := range slices.Sorted(maps.Keys(s)) {
		if order := cmp.Or(cmp.Compare(s[key], other[key])); order != 0 {
			return order
		}
	}
	return cmp.Compare(len(s), len(other))
}

// topologies are where a volume may be: where its class allows it, else where any node is. The first
// that is preferred is that of the pod's node or, before there is one, one that the volume's id
// chooses.
func (b *csiBackend) topologies(ctx context.Context, request backend.Request) (*csispec.TopologyRequirement, error) {
	ofNodes, ofNode, err := b.segmentsOfNodes(ctx, request.Node)
	if err != nil {
		return nil, err
	}
	requisite := ofNodes
	if len(request.Topologies) > 0 {
		if requisite, err = allowed(request.Topologies); err != nil {
			return nil, err
		}
	}
	if len(requisite) == 0 {
		return nil, nil //nolint:nilnil // no node has a topology: the driver chooses
	}
	if len(requisite) > maxTopologies {
		return nil, backend.Invalid.Errorf("the class and the nodes have %d topologies for driver %s, more than %d: use a class with allowedTopologies",
			len(requisite), b.spec.Driver, maxTopologies)
	}
	first := chosenBy(request.ID, requisite)
	if ofNode != nil {
		first = slices.IndexFunc(requisite, func(s segments) bool { return s.within(ofNode) })
	}
	if first < 0 {
		return nil, backend.WrongNode.Errorf("node %s is not within the allowedTopologies of the class: place the pod elsewhere, or use another class", request.Node.Name)
	}
	return &csispec.TopologyRequirement{
		Requisite: toTopologies(requisite), Preferred: toTopologies(slices.Concat(requisite[first:], requisite[:first])),
	}, nil
}

// chosenBy is the index of one of all, the same for an id while that one is there, and no other comes
// that the id prefers. A repeat of a call then finds what the first call made, also in storage with
// names that are unique in their zones only.
func chosenBy(id string, all []segments) (chosen int) {
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

// segmentsOfNodes are the topologies of all nodes on which the driver is registered, sorted, and that
// of one node.
func (b *csiBackend) segmentsOfNodes(ctx context.Context, one *corev1.Node) (all []segments, ofNode segments, err error) {
	registered, err := b.kind.cluster.CSINodes(ctx)
	if err != nil {
		return nil, nil, err
	}
	nodes, err := b.kind.cluster.Nodes(ctx)
	if err != nil {
		return nil, nil, err
	}
	labelsOf, known := make(map[string]map[string]string, len(nodes)), map[string]bool{}
	for i := range nodes {
		labelsOf[nodes[i].Name] = nodes[i].Labels
	}
	if one != nil {
		labelsOf[one.Name] = one.Labels
	}
	for i := range registered {
		keys, is := topologyKeys(&registered[i], b.spec.Driver)
		of := segmentsFrom(labelsOf[registered[i].Name], keys)
		if one != nil && registered[i].Name == one.Name && is {
			ofNode = of
		}
		if name := labels.Set(of).String(); len(of) > 0 && !known[name] {
			known[name] = true
			all = append(all, of)
		}
	}
	if one != nil && ofNode == nil {
		return nil, nil, backend.WrongNode.Errorf("driver %s is not registered on node %s, or the node lacks its topology labels: "+
			"look whether the driver's DaemonSet runs there", b.spec.Driver, one.Name)
	}
	slices.SortFunc(all, segments.compare)
	return all, ofNode, nil
}

// topologyKeys are the labels by which a driver names a node's place, if it is registered there.
func topologyKeys(node *storagev1.CSINode, driver string) (keys []string, registered bool) {
	for _, of := range node.Spec.Drivers {
		if of.Name == driver {
			return of.TopologyKeys, true
		}
	}
	return nil, false
}

// segmentsFrom are a node's labels with these keys; nil where one is missing.
func segmentsFrom(labels map[string]string, keys []string) segments {
	of := segments{}
	for _, key := range keys {
		value, has := labels[key]
		if !has {
			return nil
		}
		of[key] = value
	}
	return of
}

// allowed are the topologies that a class allows: each combination of the values of a term.
func allowed(terms []corev1.TopologySelectorTerm) ([]segments, error) {
	var all []segments
	for _, term := range terms {
		of := []segments{{}}
		for _, label := range term.MatchLabelExpressions {
			if len(of)*len(label.Values) > maxTopologies {
				return nil, backend.Invalid.Errorf("the allowedTopologies of the class are more than %d: use a class with fewer", maxTopologies)
			}
			of = times(of, label)
		}
		all = append(all, of...)
	}
	slices.SortStableFunc(all, segments.compare)
	return all, nil
}

func times(of []segments, label corev1.TopologySelectorLabelRequirement) []segments {
	var product []segments
	for _, before := range of {
		for _, value := range label.Values {
			next := maps.Clone(before)
			next[label.Key] = value
			product = append(product, next)
		}
	}
	return product
}

func toTopologies(all []segments) []*csispec.Topology {
	var topologies []*csispec.Topology
	for _, of := range all {
		topologies = append(topologies, &csispec.Topology{Segments: of})
	}
	return topologies
}

// checkTopologies checks where a driver says that its volume can be reached from.
func checkTopologies(topologies []*csispec.Topology) error {
	if len(topologies) > maxTopologies {
		return backend.Invalid.Errorf("with %d topologies, more than %d", len(topologies), maxTopologies)
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

// affinity restricts a volume to the nodes from which the driver says that it can be reached.
func affinity(topologies []*csispec.Topology) *corev1.VolumeNodeAffinity {
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
