package csi

import (
	"context"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/csi/segments"
)

// topologies are where a volume may be: where the record of the first call says, if there is one.
func (b *csiBackend) topologies(ctx context.Context, request backend.Request) (*csispec.TopologyRequirement, error) {
	placement := request.Placement
	if placement == nil {
		var err error
		if placement, err = b.choose(ctx, request); err != nil {
			return nil, err
		}
	}
	return segments.Requirement(*placement), nil
}

// Place implements backend.Placer. A driver that registers no topology keys knows no places.
func (b *csiBackend) Place(ctx context.Context, request backend.Request) (*backend.Placement, error) {
	registered, err := b.kind.cluster.CSINodes(ctx)
	if err != nil || !segments.Has(registered, b.spec.Driver) {
		return nil, err
	}
	return b.choose(ctx, request)
}

// choose places a volume where its class allows it, else where any node is. The first that is
// preferred is that of the pod's node or, before there is one, one that the volume's id chooses.
func (b *csiBackend) choose(ctx context.Context, request backend.Request) (*backend.Placement, error) {
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
	if len(requisite) > segments.Most {
		return nil, backend.Invalid.Errorf("the class and the nodes have %d topologies for driver %s, more than %d: use a class with allowedTopologies",
			len(requisite), b.spec.Driver, segments.Most)
	}
	placement := segments.Placed(request.ID, requisite, ofNode)
	if placement == nil {
		return nil, backend.WrongNode.Errorf("node %s is not within the allowedTopologies of the class: place the pod elsewhere, or use another class", request.Node.Name)
	}
	return placement, nil
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
	name := ""
	labelsOf := make(map[string]map[string]string, len(nodes))
	for i := range nodes {
		labelsOf[nodes[i].Name] = nodes[i].Labels
	}
	if one != nil {
		name, labelsOf[one.Name] = one.Name, one.Labels
	}
	all, ofNode = segments.OfNodes(registered, labelsOf, b.spec.Driver, name)
	if one != nil && ofNode == nil {
		return nil, nil, backend.WrongNode.Errorf("driver %s is not registered on node %s, or the node lacks its topology labels: "+
			"look whether the driver's DaemonSet runs there", b.spec.Driver, one.Name)
	}
	return all, ofNode, nil
}
