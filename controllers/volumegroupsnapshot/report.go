package volumegroupsnapshot

import (
	"context"

	groupsnapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumegroupsnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/internal/event"
	"github.com/stowage-dev/stowage/internal/patch"
	"github.com/stowage-dev/stowage/internal/snapshots"
	"github.com/stowage-dev/stowage/internal/wrap"
)

// reporter writes the status of VolumeGroupSnapshots, and sends their events.
type reporter struct {
	client client.Client
	events events.EventRecorder
	clock  clock.PassiveClock
	last   event.Last
}

// failed records a problem, and when it is looked at again.
func (r *reporter) failed(ctx context.Context, group *groupsnapshotv1.VolumeGroupSnapshot, failure *snapshots.Problem) (ctrl.Result, error) {
	before := group.DeepCopy()
	status := statusOf(group)
	recorded, wait := snapshots.Failure(status.Error, status.ReadyToUse, failure, r.clock.Now())
	if recorded == nil {
		return ctrl.Result{RequeueAfter: wait}, nil
	}
	status.Error, status.ReadyToUse = recorded, new(false)
	if err := r.write(ctx, group, before); err != nil {
		return ctrl.Result{}, err
	}
	r.events.Eventf(group, nil, corev1.EventTypeWarning, failure.Event, "Snapshot", "%s", *recorded.Message)
	return ctrl.Result{RequeueAfter: wait}, nil
}

// copy says of a VolumeGroupSnapshot what its content says. One that is ready remains so, and has the time that it had.
func (r *reporter) copy(ctx context.Context, group *groupsnapshotv1.VolumeGroupSnapshot, content *groupsnapshotv1.VolumeGroupSnapshotContent) error {
	if isComplete(group) {
		return nil
	}
	before := group.DeepCopy()
	status, said := statusOf(group), ptr.Deref(content.Status, groupsnapshotv1.VolumeGroupSnapshotContentStatus{})
	created := status.CreationTime == nil && said.CreationTime != nil
	if created {
		status.CreationTime = said.CreationTime
	}
	status.BoundVolumeGroupSnapshotContentName, status.ReadyToUse, status.Error = &content.Name, new(ptr.Deref(said.ReadyToUse, false)), said.Error
	if apiequality.Semantic.DeepEqual(before.Status, status) {
		return nil
	}
	if err := r.write(ctx, group, before); err != nil {
		return err
	}
	if created {
		r.say(group, event.GroupSnapshotCreated, "the driver made the snapshots")
	}
	if snapshots.IsGroupReady(group) {
		r.say(group, event.GroupSnapshotReady, "claims can be restored from the snapshots")
	}
	return nil
}

func statusOf(group *groupsnapshotv1.VolumeGroupSnapshot) *groupsnapshotv1.VolumeGroupSnapshotStatus {
	if group.Status == nil {
		group.Status = &groupsnapshotv1.VolumeGroupSnapshotStatus{}
	}
	return group.Status
}

func (r *reporter) write(ctx context.Context, group, before *groupsnapshotv1.VolumeGroupSnapshot) error {
	err := r.client.Status().Patch(ctx, group, patch.Fenced(before))
	return wrap.Error(err, "writing the status of VolumeGroupSnapshot %s", client.ObjectKeyFromObject(group))
}

// pending says which claim keeps a deleted VolumeGroupSnapshot.
func (r *reporter) pending(group *groupsnapshotv1.VolumeGroupSnapshot, claim string) {
	if r.last.IsNew(client.ObjectKeyFromObject(group), claim) {
		r.events.Eventf(group, nil, corev1.EventTypeWarning, event.SnapshotDeletePending, "Snapshot", "the snapshots are kept while claim %s is restored from one", claim)
	}
}

func (r *reporter) say(group *groupsnapshotv1.VolumeGroupSnapshot, reason, text string) {
	r.events.Eventf(group, nil, corev1.EventTypeNormal, reason, "Snapshot", "%s", text)
}
