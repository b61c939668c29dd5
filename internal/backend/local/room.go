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
	"github.com/stowage-dev/stowage/internal/backend/local/requests"
)

var _ backend.CapacityReporter = (*localBackend)(nil)

// mostNamed is how many nodes a message names; the others are counted.
const maxNamed = 5

// candidate is a node on which a volume could be made.
type candidate struct {
	node string
	// unready is 1 for a node that doesn't report Ready, else 0.
	unready int
	// room is what is left there for volumes, in bytes.
	room int64
}

// candidates returns the nodes with Ready disks and their room, most room first. All that was
// requested on a node counts, made or not, except for one volume.
func (b *localBackend) candidates(ctx context.Context, nodes []corev1.Node, except string) ([]candidate, error) {
	disks, err := b.disks(ctx)
	if err != nil {
		return nil, err
	}
	asked, err := b.currentRequests(ctx)
	if err != nil {
		return nil, err
	}
	var found []candidate
	for _, node := range nodes {
		disk := disks[node.Name]
		if disk == nil || !meta.IsStatusConditionTrue(disk.Status.Conditions, stowagev1alpha1.ReadyCondition) {
			continue
		}
		// The agent's report is a moment old: it may not include the latest requests.
		of := asked.At(b.name, node.Name, except)
		room := min(bytes(disk.Status.Available)-of.Unmade,
			bytes(disk.Status.Total)-bytes(disk.Spec.ReservedCapacity)-of.All)
		found = append(found, candidate{node: node.Name, unready: unready(node), room: max(0, room)})
	}
	slices.SortFunc(found, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.unready, b.unready), cmp.Compare(b.room, a.room), cmp.Compare(a.node, b.node))
	})
	return found, nil
}

// currentRequests are those that a watch shows, or that are listed until it has shown all.
func (b *localBackend) currentRequests(ctx context.Context) (*requests.Requests, error) {
	if b.requests.IsCurrent() {
		return b.requests, nil
	}
	volumes := &stowagev1alpha1.NodeVolumeList{}
	if err := b.Client.List(ctx, volumes, append(forReading, client.MatchingLabels{stowagev1alpha1.BackendLabel: b.name})...); err != nil {
		return nil, fmt.Errorf("listing the volumes of backend %s: %w", b.name, err)
	}
	listed := requests.New()
	for i := range volumes.Items {
		listed.Set(&volumes.Items[i])
	}
	return listed, nil
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

// Space adds up the disks of all nodes, as their agents last reported them, without disks that are
// missing now.
func (b *localBackend) Space(ctx context.Context) (backend.Space, error) {
	disks, err := b.disks(ctx)
	if err != nil {
		return backend.Space{}, err
	}
	var total, used int64
	for _, disk := range disks {
		if disk.Status.Available != nil {
			total += bytes(disk.Status.Total)
			used += bytes(disk.Status.Used)
		}
	}
	return backend.Space{Total: *resource.NewQuantity(total, resource.BinarySI), Used: *resource.NewQuantity(used, resource.BinarySI)}, nil
}

// exhausted names the nodes with too little room, without numbers. Each pending claim gets the
// text, so a text with numbers would be written to all of them again with each change.
func exhausted(capacity resource.Quantity, candidates []candidate) error {
	nodes := make([]string, 0, len(candidates))
	for _, each := range candidates {
		nodes = append(nodes, each.node)
	}
	slices.Sort(nodes)
	return backend.Exhausted.Errorf("none of %d nodes has room for %s (%s): delete claims, or add a node or a disk; "+
		"kubectl get nodedisks shows what each has", len(candidates), capacity.String(), joinFirst(nodes, "; "))
}

// joinFirst joins the first few of what may be thousands, and counts the rest.
func joinFirst(all []string, separator string) string {
	if len(all) <= maxNamed {
		return strings.Join(all, separator)
	}
	return fmt.Sprintf("%s%sand %d more", strings.Join(all[:maxNamed], separator), separator, len(all)-maxNamed)
}

func bytes(quantity *resource.Quantity) int64 {
	number := ptr.Deref(quantity, resource.Quantity{})
	return number.Value()
}
