package volumegroupsnapshot

import (
	"context"
	"fmt"

	groupsnapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumegroupsnapshot/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/internal/event"
	"github.com/stowage-dev/stowage/internal/patch"
	"github.com/stowage-dev/stowage/internal/snapshots"
	"github.com/stowage-dev/stowage/internal/wrap"
)

// classes finds the VolumeGroupSnapshotClasses of VolumeGroupSnapshots.
type classes struct {
	client client.Client
	live   client.Reader
}

// of reads the class of a VolumeGroupSnapshot, and writes the default class of a driver into one without. Reads are live:
// there are few classes.
func (c classes) of(ctx context.Context, group *groupsnapshotv1.VolumeGroupSnapshot, driver string) (*groupsnapshotv1.VolumeGroupSnapshotClass, error) {
	if name := group.Spec.VolumeGroupSnapshotClassName; name != nil {
		class := &groupsnapshotv1.VolumeGroupSnapshotClass{}
		err := c.live.Get(ctx, client.ObjectKey{Name: *name}, class)
		if apierrors.IsNotFound(err) {
			return nil, snapshots.NewProblem(event.GetGroupSnapshotClassFailed, "VolumeGroupSnapshotClass %s does not exist: create it", *name)
		}
		return class, wrap.Error(err, "reading VolumeGroupSnapshotClass %s", *name)
	}
	all := &groupsnapshotv1.VolumeGroupSnapshotClassList{}
	if err := c.live.List(ctx, all); err != nil {
		return nil, fmt.Errorf("listing the VolumeGroupSnapshotClasses: %w", err)
	}
	var found []*groupsnapshotv1.VolumeGroupSnapshotClass
	for i := range all.Items {
		if class := &all.Items[i]; class.Driver == driver && class.Annotations[snapshots.GroupDefaultClass] == "true" {
			found = append(found, class)
		}
	}
	if len(found) != 1 {
		return nil, snapshots.NoDefault(event.SetDefaultGroupSnapshotClassFailed, kind, len(found), driver, snapshots.GroupDefaultClass)
	}
	before := group.DeepCopy()
	group.Spec.VolumeGroupSnapshotClassName = &found[0].Name
	return found[0], wrap.Error(c.client.Patch(ctx, group, patch.Fenced(before)), "giving VolumeGroupSnapshot %s its class", group.Name)
}
