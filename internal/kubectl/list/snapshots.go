package list

import (
	"context"
	"slices"
	"strings"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/kubectl/cluster"
	"github.com/stowage-dev/stowage/internal/kubectl/facts"
	"github.com/stowage-dev/stowage/internal/kubectl/output"
)

// Snapshot is a snapshot in its undelete window: its VolumeSnapshot is deleted.
type Snapshot struct {
	// Name is that of the VolumeSnapshotContent that has it.
	Name string `json:"name"`
	// VolumeSnapshot is what it was, as NAMESPACE/NAME.
	VolumeSnapshot string `json:"volumeSnapshot"`
	Backend        string `json:"backend,omitempty"`
	Size           string `json:"size,omitempty"`
	// RetainedUntil is the end of the undelete window, in RFC 3339, or "kept".
	RetainedUntil string `json:"retainedUntil"`
	Driver        string `json:"driver"`
	Handle        string `json:"handle,omitempty"`
}

// retainedSnapshots reads the snapshots in their undelete windows. Nodes have none.
func retainedSnapshots(ctx context.Context, c *cluster.Cluster, s selection) ([]Snapshot, error) {
	found := []Snapshot{}
	if s.node != "" {
		return found, nil
	}
	contents, backends := &snapshotv1.VolumeSnapshotContentList{}, &stowagev1alpha1.StorageBackendList{}
	if err := c.List(ctx, contents, client.HasLabels{stowagev1alpha1.UndeletableLabel}); err != nil {
		return nil, err
	}
	if err := c.List(ctx, backends); err != nil {
		return nil, err
	}
	for i := range contents.Items {
		content := &contents.Items[i]
		kept, in := facts.RetainedSnapshot(content, backends.Items)
		if backend := content.Labels[stowagev1alpha1.BackendLabel]; !in || s.backend != "" && s.backend != backend ||
			s.namespace != "" && s.namespace != content.Spec.VolumeSnapshotRef.Namespace {
			continue
		}
		found = append(found, snapshot(content, kept))
	}
	slices.SortFunc(found, func(a, b Snapshot) int {
		return strings.Compare(a.VolumeSnapshot+" "+a.Name, b.VolumeSnapshot+" "+b.Name)
	})
	return found, nil
}

func snapshot(content *snapshotv1.VolumeSnapshotContent, kept facts.Retention) Snapshot {
	s := Snapshot{
		Name: content.Name, VolumeSnapshot: facts.SnapshotOf(content), Backend: content.Labels[stowagev1alpha1.BackendLabel],
		RetainedUntil: kept.String(), Driver: content.Spec.Driver,
	}
	if handle := content.Spec.Source.SnapshotHandle; handle != nil {
		s.Handle = *handle
	}
	if content.Status != nil && content.Status.RestoreSize != nil {
		s.Size = facts.Bytes(resource.NewQuantity(*content.Status.RestoreSize, resource.BinarySI))
	}
	return s
}

// showSnapshots prints snapshots, after the volumes if there are some.
func showSnapshots(p *output.Printer, found []Snapshot, first bool) {
	p.Title("Snapshots", first)
	table := &output.Table{Columns: []string{"NAME", "VOLUMESNAPSHOT", "BACKEND", "SIZE", "RETAINED UNTIL", "DRIVER", "HANDLE"}, Wide: 5}
	for _, s := range found {
		table.Add(output.Text(s.Name), output.Text(s.VolumeSnapshot), output.Text(s.Backend), output.Text(s.Size),
			output.Cell{Text: s.RetainedUntil, Level: output.Warning}, output.Text(s.Driver), output.Text(s.Handle))
	}
	p.Print(table)
}
