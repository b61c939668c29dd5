package volumesnapshot

import (
	"context"
	"fmt"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/internal/event"
	"github.com/stowage-dev/stowage/internal/patch"
	"github.com/stowage-dev/stowage/internal/snapshots"
	"github.com/stowage-dev/stowage/internal/wrap"
)

// classes finds the VolumeSnapshotClasses of VolumeSnapshots. Reads are live: there are few.
type classes struct {
	client client.Client
	live   client.Reader
}

// of reads the class of a VolumeSnapshot, and gives the default class of the volume's driver to one without. The class
// must be of that driver: another driver may have a volume with the same handle.
func (c classes) of(ctx context.Context, snapshot *snapshotv1.VolumeSnapshot, pv *corev1.PersistentVolume) (*snapshotv1.VolumeSnapshotClass, error) {
	if snapshot.Spec.VolumeSnapshotClassName == nil {
		return c.setDefault(ctx, snapshot, pv.Spec.CSI.Driver)
	}
	name := *snapshot.Spec.VolumeSnapshotClassName
	class := &snapshotv1.VolumeSnapshotClass{}
	err := c.live.Get(ctx, client.ObjectKey{Name: name}, class)
	switch {
	case name == "" || apierrors.IsNotFound(err):
		return nil, snapshots.NewProblem(event.GetSnapshotClassFailed, "VolumeSnapshotClass %q does not exist: create it", name)
	case err != nil:
		return nil, fmt.Errorf("reading VolumeSnapshotClass %s: %w", name, err)
	case class.Driver != pv.Spec.CSI.Driver:
		return nil, snapshots.NewProblem(event.SnapshotContentCreationFailed, "VolumeSnapshotClass %s is of driver %.200q, and volume %s of %.200q: use a class of that driver",
			name, class.Driver, pv.Name, pv.Spec.CSI.Driver)
	}
	return class, nil
}

// setDefault writes the default class of a driver into a VolumeSnapshot.
func (c classes) setDefault(ctx context.Context, snapshot *snapshotv1.VolumeSnapshot, driver string) (*snapshotv1.VolumeSnapshotClass, error) {
	all := &snapshotv1.VolumeSnapshotClassList{}
	if err := c.live.List(ctx, all); err != nil {
		return nil, fmt.Errorf("listing the VolumeSnapshotClasses: %w", err)
	}
	var found []*snapshotv1.VolumeSnapshotClass
	for i := range all.Items {
		if class := &all.Items[i]; class.Driver == driver && class.Annotations[snapshots.DefaultClass] == "true" {
			found = append(found, class)
		}
	}
	if len(found) != 1 {
		return nil, snapshots.NoDefault(event.SetDefaultSnapshotClassFailed, "VolumeSnapshot", len(found), driver, snapshots.DefaultClass)
	}
	before := snapshot.DeepCopy()
	snapshot.Spec.VolumeSnapshotClassName = &found[0].Name
	return found[0], wrap.Error(c.client.Patch(ctx, snapshot, patch.Fenced(before)), "giving VolumeSnapshot %s its class", snapshot.Name)
}
