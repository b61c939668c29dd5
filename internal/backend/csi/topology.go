package csi

import (
	"context"
	"slices"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/csi/segments"
)

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
		if requisite, err = segments.Allowed(request.Topologies); err != nil {
			return nil, err
		}
	}
	if len(requisite) == 0 {
		return nil, nil //nolint:nilnil // no node has a topology: the driver chooses
	}
	if len(requisite) > segments.Most {
		return nil, backend.Invalid.Errorf("the class and the nodes have %d topologies for driver %s, more than %d: use a class with allowedTopologies",
			len(requisite), b.spec.Driver, segments.Most)
	}
	first := segments.Chosen(request.ID, requisite)
	if ofNode != nil {
		first = slices.IndexFunc(requisite, func(s segments.Segments) bool { return s.Within(ofNode) })
	}
	if first < 0 {
		return nil, backend.WrongNode.Errorf("node %s is not within the allowedTopologies of the class: place the pod elsewhere, or use another class", request.Node.Name)
	}
	return &csispec.TopologyRequirement{
		Requisite: segments.Topologies(requisite), Preferred: segments.Topologies(slices.Concat(requisite[first:], requisite[:first])),
	}, nil
}

// segmentsOfNodes are the topologies of all nodes on which the driver is registered, sorted, and that
// of one node.
func (b *csiBackend) segmentsOfNodes(ctx context.Context, one *corev1.Node) (all []segments.Segments, ofNode segments.Segments, err error) {
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
		keys, is := segments.Keys(&registered[i], b.spec.Driver)
		of := segments.Of(labelsOf[registered[i].Name], keys)
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
	slices.SortFunc(all, segments.Segments.Compare)
	return all, ofNode, nil
}
