package local

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
)

// reportTime is how long a node's agent has to say how its disk is before that
// counts as a fault.
const reportTime = time.Minute

// Probe succeeds where the backend has nodes, and volumes can be made on the disks of all of them.
func (b *localBackend) Probe(ctx context.Context) error {
	nodes, err := b.nodes(ctx)
	if err != nil {
		return err
	}
	if len(nodes) == 0 {
		return b.noNodes()
	}
	disks, err := b.disks(ctx)
	if err != nil {
		return err
	}
	return b.checkDisks(nodes, disks)
}

// checkDisks returns an error that lists the disks on which no volumes can be made.
func (b *localBackend) checkDisks(nodes []corev1.Node, disks map[string]*stowagev1alpha1.NodeDisk) error {
	problems, reported := &troubles{}, false
	for _, node := range nodes {
		switch disk := disks[node.Name]; {
		case disk != nil && isReported(disk):
			reported = true
			if ready := meta.FindStatusCondition(disk.Status.Conditions, stowagev1alpha1.ReadyCondition); ready.Status != metav1.ConditionTrue {
				problems.add(node.Name, ready.Message)
			}
		case disk != nil && time.Since(disk.CreationTimestamp.Time) > reportTime:
			problems.add(node.Name, "the agent has not reported about its disk: see whether it runs")
		}
	}
	switch {
	case len(problems.messages) > 0:
		return backend.Unavailable.Errorf("%d of %d nodes can't make volumes: %s", problems.number, len(nodes), problems)
	case !reported:
		return backend.Unavailable.Errorf("waiting for the agents of the backend's %d nodes to report about their disks", len(nodes))
	default:
		return nil
	}
}

func isReported(disk *stowagev1alpha1.NodeDisk) bool {
	return meta.FindStatusCondition(disk.Status.Conditions, stowagev1alpha1.ReadyCondition) != nil
}

// troubles are the problems of nodes. Those of a wrong path or a missing tool are the same on each.
type troubles struct {
	messages []string
	nodes    map[string][]string
	number   int
}

func (t *troubles) add(node, message string) {
	if t.nodes == nil {
		t.nodes = map[string][]string{}
	}
	if len(t.nodes[message]) == 0 {
		t.messages = append(t.messages, message)
	}
	t.nodes[message] = append(t.nodes[message], node)
	t.number++
}

func (t *troubles) String() string {
	var problems []string
	for _, message := range t.messages {
		word := "nodes"
		if len(t.nodes[message]) == 1 {
			word = "node"
		}
		problems = append(problems, fmt.Sprintf("%s %s: %s", word, joinFirst(t.nodes[message], ", "), message))
	}
	return joinFirst(problems, "; ")
}
