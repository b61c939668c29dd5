package local

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
)

const (
	// reportTime is how long a node's agent has to say how its disk is before that
	// counts as a fault.
	reportTime = time.Minute
	// mostNamed is how many nodes a message names; the others are counted.
	mostNamed = 5
)

// forReading lists what is read and never changed, as the cache has it now. To wait for
// it to have every volume that was asked for just before would hold up each of many that
// are asked for at once; the agent, which knows, has those moved for which there is no
// room.
var forReading = []client.ListOption{client.UnsafeDisableDeepCopy, client.DisableReadYourWritesConsistency}

// place is a node on which a volume could be made.
type place struct {
	node string
	// unready is 1 for a node that doesn't report Ready, else 0.
	unready int
	// room is what is left there for volumes, in bytes.
	room int64
}

// places tells what room the nodes have whose disks are Ready, that with most of it
// first. What was asked of a node counts, made or not, but for one volume.
func (b *localBackend) places(ctx context.Context, nodes []corev1.Node, but string) ([]place, error) {
	disks, err := b.disks(ctx)
	if err != nil {
		return nil, err
	}
	volumes := &stowagev1alpha1.NodeVolumeList{}
	if err := b.Client.List(ctx, volumes, append(forReading, client.MatchingLabels{stowagev1alpha1.BackendLabel: b.name})...); err != nil {
		return nil, fmt.Errorf("listing the volumes of backend %s: %w", b.name, err)
	}
	asked, unmade := map[string]int64{}, map[string]int64{}
	for i := range volumes.Items {
		volume := &volumes.Items[i]
		if volume.Name == but {
			continue
		}
		asked[volume.Spec.NodeName] += volume.Spec.Capacity.Value()
		if !meta.IsStatusConditionTrue(volume.Status.Conditions, stowagev1alpha1.ProvisionedCondition) {
			unmade[volume.Spec.NodeName] += volume.Spec.Capacity.Value()
		}
	}
	var places []place
	for _, node := range nodes {
		disk := disks[node.Name]
		if disk == nil || !meta.IsStatusConditionTrue(disk.Status.Conditions, stowagev1alpha1.ReadyCondition) {
			continue
		}
		// The agent's number is a moment old: it may not know yet what was asked of it.
		room := min(bytes(disk.Status.Available)-unmade[node.Name],
			bytes(disk.Status.Total)-bytes(disk.Spec.ReservedCapacity)-asked[node.Name])
		places = append(places, place{node: node.Name, unready: unready(node), room: max(0, room)})
	}
	slices.SortFunc(places, func(a, b place) int {
		return cmp.Or(cmp.Compare(a.unready, b.unready), cmp.Compare(b.room, a.room), cmp.Compare(a.node, b.node))
	})
	return places, nil
}

// disks are the NodeDisks of the backend, by node.
func (b *localBackend) disks(ctx context.Context) (map[string]*stowagev1alpha1.NodeDisk, error) {
	list := &stowagev1alpha1.NodeDiskList{}
	if err := b.Client.List(ctx, list, append(forReading, client.MatchingLabels{stowagev1alpha1.BackendLabel: b.name})...); err != nil {
		return nil, fmt.Errorf("listing the disks of backend %s: %w", b.name, err)
	}
	disks := map[string]*stowagev1alpha1.NodeDisk{}
	for i := range list.Items {
		disks[list.Items[i].Spec.NodeName] = &list.Items[i]
	}
	return disks, nil
}

// checkDisks tells of the disks on which no volumes can be made.
func (b *localBackend) checkDisks(nodes []corev1.Node, disks map[string]*stowagev1alpha1.NodeDisk) error {
	var troubles []string
	reported := false
	for _, node := range nodes {
		switch disk := disks[node.Name]; {
		case disk != nil && isReported(disk):
			reported = true
			if ready := meta.FindStatusCondition(disk.Status.Conditions, stowagev1alpha1.ReadyCondition); ready.Status != metav1.ConditionTrue {
				troubles = append(troubles, fmt.Sprintf("node %s: %s", node.Name, ready.Message))
			}
		case disk != nil && time.Since(disk.CreationTimestamp.Time) > reportTime:
			troubles = append(troubles, fmt.Sprintf("node %s: its agent has not said how its disk is: see whether it runs", node.Name))
		}
	}
	switch {
	case len(troubles) > 0:
		return backend.Unavailable.Errorf("%d of %d nodes can't make volumes: %s", len(troubles), len(nodes), named(troubles))
	case !reported:
		return backend.Unavailable.Errorf("waiting for the agents of the backend's %d nodes to say how their disks are", len(nodes))
	default:
		return nil
	}
}

func isReported(disk *stowagev1alpha1.NodeDisk) bool {
	return meta.FindStatusCondition(disk.Status.Conditions, stowagev1alpha1.ReadyCondition) != nil
}

// exhausted names the nodes that have too little room. How much each has stands in its
// NodeDisk alone: the text is written to each claim that waits, again with each change.
func exhausted(wanted resource.Quantity, places []place) error {
	nodes := make([]string, 0, len(places))
	for _, place := range places {
		nodes = append(nodes, place.node)
	}
	slices.Sort(nodes)
	return backend.Exhausted.Errorf("none of %d nodes has room for %s (%s): delete claims, or add a node or a disk; "+
		"kubectl get nodedisks shows what each has", len(places), wanted.String(), named(nodes))
}

// named joins the first few of what may be thousands, and counts the rest.
func named(all []string) string {
	if len(all) <= mostNamed {
		return strings.Join(all, "; ")
	}
	return fmt.Sprintf("%s; and %d more", strings.Join(all[:mostNamed], "; "), len(all)-mostNamed)
}

func bytes(quantity *resource.Quantity) int64 {
	number := ptr.Deref(quantity, resource.Quantity{})
	return number.Value()
}
