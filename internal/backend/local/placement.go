package local

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
)

// choose picks the node of a new volume: the one that the claim's pod was placed
// on, or else the Ready node of the backend that has most room. Whether there is room
// is the agent's to say in the end: it alone sees the disk.
func (b *localBackend) choose(ctx context.Context, request backend.Request) (string, error) {
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
	places, err := b.places(ctx, nodes, request.ID)
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
	if at := slices.IndexFunc(places, func(place place) bool { return place.room >= request.Capacity.Value() }); at >= 0 {
		return places[at].node, nil
	}
	return "", exhausted(request.Capacity, places)
}

// chooseOther picks another node for a volume for which its node has no room, as the
// node's agent said and as its numbers say, too: where those disagree, one of them is
// old, and the volume stays.
func (b *localBackend) chooseOther(ctx context.Context, request backend.Request, has string, refusal error) (string, error) {
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
	places, err := b.places(ctx, nodes, request.ID)
	if err != nil {
		return "", err
	}
	if slices.ContainsFunc(places, func(place place) bool { return place.node == has && place.room >= request.Capacity.Value() }) {
		return "", refusal
	}
	if at := slices.IndexFunc(places, func(place place) bool { return place.room >= request.Capacity.Value() }); at >= 0 {
		return places[at].node, nil
	}
	if len(places) < 2 {
		return "", refusal
	}
	return "", exhausted(request.Capacity, places)
}

// allowedNodes lists the backend's nodes on which the claim's class allows volumes.
func (b *localBackend) allowedNodes(ctx context.Context, request backend.Request) ([]corev1.Node, error) {
	nodes, err := b.nodes(ctx)
	if err != nil {
		return nil, err
	}
	if len(nodes) == 0 {
		return nil, b.noNodes()
	}
	nodes = slices.DeleteFunc(nodes, func(node corev1.Node) bool { return !backend.Allows(request.Topologies, &node) })
	if len(nodes) == 0 {
		return nil, backend.Unavailable.Errorf("no node of backend %s is within the allowedTopologies of the claim's StorageClass: "+
			"label one so, or use another class", b.name)
	}
	return nodes, nil
}

// nodes lists those that belong to the backend and aren't on their way out.
func (b *localBackend) nodes(ctx context.Context) ([]corev1.Node, error) {
	list := &corev1.NodeList{}
	if err := b.Client.List(ctx, list, append(forReading, client.MatchingLabels(b.spec.NodeSelector))...); err != nil {
		return nil, fmt.Errorf("listing the nodes of backend %s: %w", b.name, err)
	}
	return slices.DeleteFunc(list.Items, func(node corev1.Node) bool {
		return !b.matches(&node) || !node.DeletionTimestamp.IsZero()
	}), nil
}

func (b *localBackend) matches(node *corev1.Node) bool {
	return backend.LiesOn(&b.spec, node)
}

func (b *localBackend) noNodes() error {
	wanted := stowagev1alpha1.TopologyNodeLabel
	if len(b.spec.NodeSelector) > 0 {
		wanted += " and " + labels.FormatLabels(b.spec.NodeSelector)
	}
	return backend.Unavailable.Errorf("no node has the labels that backend %s asks for (%s): "+
		"start the node agent on one, or change local.nodeSelector", b.name, wanted)
}

// unready is 0 for a node that reports Ready, else 1.
func unready(node corev1.Node) int {
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue {
			return 0
		}
	}
	return 1
}
