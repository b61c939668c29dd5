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
	var problems []string
	reported := false
	for _, node := range nodes {
		switch disk := disks[node.Name]; {
		case disk != nil && isReported(disk):
			reported = true
			if ready := meta.FindStatusCondition(disk.Status.Conditions, stowagev1alpha1.ReadyCondition); ready.Status != metav1.ConditionTrue {
				problems = append(problems, fmt.Sprintf("node %s: %s", node.Name, ready.Message))
			}
		case disk != nil && time.Since(disk.CreationTimestamp.Time) > reportTime:
			problems = append(problems, fmt.Sprintf("node %s: its agent has not reported about its disk: see whether it runs", node.Name))
		}
	}
	switch {
	case len(problems) > 0:
		return backend.Unavailable.Errorf("%d of %d nodes can't make volumes: %s", len(problems), len(nodes), joinFirst(problems))
	case !reported:
		return backend.Unavailable.Errorf("waiting for the agents of the backend's %d nodes to report about their disks", len(nodes))
	default:
		return nil
	}
}

func isReported(disk *stowagev1alpha1.NodeDisk) bool {
	return meta.FindStatusCondition(disk.Status.Conditions, stowagev1alpha1.ReadyCondition) != nil
}
