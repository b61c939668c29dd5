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

// forReading lists from the cache, for reading only. Waiting until the cache has every NodeVolume
// that was just written would delay each of many requests. The agent knows the room: volumes
// without any are rescheduled.
var forReading = []client.ListOption{client.UnsafeDisableDeepCopy, client.DisableReadYourWritesConsistency}

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

// nodes lists the nodes that belong to the backend and aren't being deleted.
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
	required := stowagev1alpha1.TopologyNodeLabel
	if len(b.spec.NodeSelector) > 0 {
		required += " and " + labels.FormatLabels(b.spec.NodeSelector)
	}
	return backend.Unavailable.Errorf("no node has the labels that backend %s asks for (%s): "+
		"start the node agent on one, or change local.nodeSelector", b.name, required)
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
