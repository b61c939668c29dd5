package local

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/labels"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
)

// choose picks the node of a new volume: the one that the claim's pod was placed
// on, or else the Ready node of the backend that has most room. Whether there is room
// is the agent's to say in the end: it alone sees the disk.
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
	places, err := b.candidates(ctx, nodes, request.ID)
	if err != nil {
		return "", err
	}
	if len(places) == 0 {
		disks, err := b.disks(ctx)
		if err != nil {
			return "", err
		}
		return "", b.checkDisks(nodes, disks)
	}
	if at := slices.IndexFunc(places, func(place candidate) bool { return place.room >= request.Capacity.Value() }); at >= 0 {
		return places[at].node, nil
	}
	return "", exhausted(request.Capacity, places)
}

// chooseOther picks another node for a volume for which its node has no room, as the
// node's agent said and as its numbers say, too: where those disagree, one of them is
// old, and the volume stays.
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
	places, err := b.candidates(ctx, nodes, request.ID)
	if err != nil {
		return "", err
	}
	if slices.ContainsFunc(places, func(place candidate) bool { return place.node == has && place.room >= request.Capacity.Value() }) {
		return "", refusal
	}
	if at := slices.IndexFunc(places, func(place candidate) bool { return place.room >= request.Capacity.Value() }); at >= 0 {
		return places[at].node, nil
	}
	if len(places) < 2 {
		return "", refusal
	}
	return "", exhausted(request.Capacity, places)
}
