package local

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/labels"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
)

// chooseNode picks the node of a new volume: the node of the claim's pod, or else the backend's
// Ready node with most room. The agent decides in the end whether there is room: it alone sees the
// disk.
func (b *localBackend) chooseNode(ctx context.Context, request backend.Request) (string, error) {
	if request.Node != nil {
		if !b.matches(request.Node) {
			return "", backend.WrongNode.Errorf("node %s is none of backend %s: it needs the labels %s and %s",
				request.Node.Name, b.name, labels.FormatLabels(b.spec.NodeSelector), stowagev1alpha1.TopologyNodeLabel)
		}
		return request.Node.Name, nil
	}
	nodes, err := b.allowedNodes(ctx, request)
	if err != nil {
		return "", err
	}
	candidates, err := b.candidates(ctx, nodes, request.ID)
	if err != nil {
		return "", err
	}
	if len(candidates) == 0 {
		disks, err := b.disks(ctx)
		if err != nil {
			return "", err
		}
		return "", b.checkDisks(nodes, disks)
	}
	return firstWithRoom(candidates, request.Capacity)
}

// firstWithRoom returns the first node with room, or an error of kind Exhausted.
func firstWithRoom(candidates []candidate, capacity resource.Quantity) (string, error) {
	for _, each := range candidates {
		if each.room >= capacity.Value() {
			return each.node, nil
		}
	}
	return "", exhausted(capacity, candidates)
}

// chooseOtherNode picks another node for a volume without room on its node. Both the agent's answer
// and its NodeDisk must say so: if they disagree, one of them is old, and the volume stays.
func (b *localBackend) chooseOtherNode(ctx context.Context, request backend.Request, has string, refusal error) (string, error) {
	if request.Node != nil {
		if request.Node.Name == has {
			return "", refusal
		}
		return request.Node.Name, nil
	}
	nodes, err := b.allowedNodes(ctx, request)
	if err != nil {
		return "", refusal
	}
	candidates, err := b.candidates(ctx, nodes, request.ID)
	if err != nil {
		return "", err
	}
	if slices.ContainsFunc(candidates, func(each candidate) bool { return each.node == has && each.room >= request.Capacity.Value() }) {
		return "", refusal
	}
	node, err := firstWithRoom(candidates, request.Capacity)
	if err != nil && len(candidates) < 2 {
		return "", refusal
	}
	return node, err
}
