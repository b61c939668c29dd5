package local

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
)

// mostNamed is how many nodes a message names; the others are counted.
const maxNamed = 5

// place is a node on which a volume could be made.
type candidate struct {
	node string
	// unready is 1 for a node that doesn't report Ready, else 0.
	unready int
	// room is what is left there for volumes, in bytes.
	room int64
}

// places tells what room the nodes have whose disks are Ready, that with most of it
// first. What was asked of a node counts, made or not, but for one volume.
func (b *localBackend) candidates(ctx context.Context, nodes []corev1.Node, but string) ([]candidate, error) {
	disks, err := b.disks(ctx)
	if err != nil {
		return nil, err
	}
	volumes := &stowagev1alpha1.LocalVolumeList{}
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
	var places []candidate
	for _, node := range nodes {
		disk := disks[node.Name]
		if disk == nil || !meta.IsStatusConditionTrue(disk.Status.Conditions, stowagev1alpha1.ReadyCondition) {
			continue
		}
		// The agent's number is a moment old: it may not know yet what was asked of it.
		room := min(bytes(disk.Status.Available)-unmade[node.Name],
			bytes(disk.Status.Total)-bytes(disk.Spec.ReservedCapacity)-asked[node.Name])
		places = append(places, candidate{node: node.Name, unready: unready(node), room: max(0, room)})
	}
	slices.SortFunc(places, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.unready, b.unready), cmp.Compare(b.room, a.room), cmp.Compare(a.node, b.node))
	})
	return places, nil
}

// disks are the LocalDisks of the backend, by node.
func (b *localBackend) disks(ctx context.Context) (map[string]*stowagev1alpha1.LocalDisk, error) {
	list := &stowagev1alpha1.LocalDiskList{}
	if err := b.Client.List(ctx, list, append(forReading, client.MatchingLabels{stowagev1alpha1.BackendLabel: b.name})...); err != nil {
		return nil, fmt.Errorf("listing the disks of backend %s: %w", b.name, err)
	}
	disks := map[string]*stowagev1alpha1.LocalDisk{}
	for i := range list.Items {
		disks[list.Items[i].Spec.NodeName] = &list.Items[i]
	}
	return disks, nil
}

// exhausted names the nodes that have too little room. How much each has stands in its
// LocalDisk alone: the text is written to each claim that waits, again with each change.
func exhausted(wanted resource.Quantity, places []candidate) error {
	nodes := make([]string, 0, len(places))
	for _, place := range places {
		nodes = append(nodes, place.node)
	}
	slices.Sort(nodes)
	return backend.Exhausted.Errorf("none of %d nodes has room for %s (%s): delete claims, or add a node or a disk; "+
		"kubectl get localdisks shows what each has", len(places), wanted.String(), joinFirst(nodes))
}

// named joins the first few of what may be thousands, and counts the rest.
func joinFirst(all []string) string {
	if len(all) <= maxNamed {
		return strings.Join(all, "; ")
	}
	return fmt.Sprintf("%s; and %d more", strings.Join(all[:maxNamed], "; "), len(all)-maxNamed)
}

func bytes(quantity *resource.Quantity) int64 {
	number := ptr.Deref(quantity, resource.Quantity{})
	return number.Value()
}
