package local

import (
	"cmp"
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
// on, or else the Ready node of the backend that gave least to volumes so far.
// Whether there is room is the agent's to say: it alone sees the disk.
func (b *localBackend) choose(ctx context.Context, request backend.Request) (string, error) {
	if request.Node != nil {
		if !b.matches(request.Node) {
			return "", backend.WrongNode.Errorf("node %s is none of backend %s: it needs the labels %s and %s",
				request.Node.Name, b.name, labels.FormatLabels(b.spec.NodeSelector), stowagev1alpha1.TopologyNodeLabel)
		}
		return request.Node.Name, nil
	}
	nodes, err := b.nodes(ctx)
	if err != nil {
		return "", err
	}
	if len(nodes) == 0 {
		return "", b.noNodes()
	}
	nodes = slices.DeleteFunc(nodes, func(node corev1.Node) bool { return !backend.Allows(request.Topologies, &node) })
	if len(nodes) == 0 {
		return "", backend.Unavailable.Errorf("no node of backend %s is within the allowedTopologies of the claim's StorageClass: "+
			"label one so, or use another class", b.name)
	}
	given, err := b.given(ctx)
	if err != nil {
		return "", err
	}
	best := slices.MinFunc(nodes, func(a, b corev1.Node) int {
		return cmp.Or(
			cmp.Compare(unready(a), unready(b)),
			cmp.Compare(given[a.Name], given[b.Name]),
			cmp.Compare(a.Name, b.Name),
		)
	})
	return best.Name, nil
}

// nodes lists those that belong to the backend and aren't on their way out.
func (b *localBackend) nodes(ctx context.Context) ([]corev1.Node, error) {
	list := &corev1.NodeList{}
	if err := b.Client.List(ctx, list, client.MatchingLabels(b.spec.NodeSelector)); err != nil {
		return nil, fmt.Errorf("listing the nodes of backend %s: %w", b.name, err)
	}
	return slices.DeleteFunc(list.Items, func(node corev1.Node) bool {
		return !b.matches(&node) || !node.DeletionTimestamp.IsZero()
	}), nil
}

// given adds up, for each node, the bytes given to volumes of the backend.
func (b *localBackend) given(ctx context.Context) (map[string]int64, error) {
	list := &stowagev1alpha1.LocalVolumeList{}
	if err := b.Client.List(ctx, list, client.MatchingLabels{stowagev1alpha1.BackendLabel: b.name}); err != nil {
		return nil, fmt.Errorf("listing the volumes of backend %s: %w", b.name, err)
	}
	given := map[string]int64{}
	for _, volume := range list.Items {
		given[volume.Spec.NodeName] += volume.Spec.Capacity.Value()
	}
	return given, nil
}

func (b *localBackend) matches(node *corev1.Node) bool {
	return labels.SelectorFromSet(b.spec.NodeSelector).Matches(labels.Set(node.Labels)) &&
		node.Labels[stowagev1alpha1.TopologyNodeLabel] != ""
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
