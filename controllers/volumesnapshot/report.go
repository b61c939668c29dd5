package volumesnapshot

import (
	"context"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// reporter writes the status of VolumeSnapshots, and sends their events.
type reporter struct {
	client client.Client
	events events.EventRecorder
	clock  clock.PassiveClock
	last   event.Last
}

// failed records a problem, and when it is looked at again: after as long as it has lasted.
func (r *reporter) failed(ctx context.Context, snapshot *snapshotv1.VolumeSnapshot, failure *snapshots.Problem) (ctrl.Result, error) {
	before := snapshot.DeepCopy()
	if snapshot.Status == nil {
		snapshot.Status = &snapshotv1.VolumeSnapshotStatus{}
	}
	text, wait := snapshots.Failure(snapshot.Status.Error, snapshot.Status.ReadyToUse, failure, r.clock.Now())
	if text == nil {
		return ctrl.Result{RequeueAfter: wait}, nil
	}
	snapshot.Status.Error, snapshot.Status.ReadyToUse = text, new(false)
	if err := r.write(ctx, snapshot, before); err != nil {
		return ctrl.Result{}, err
	}
	r.events.Eventf(snapshot, nil, corev1.EventTypeWarning, failure.Event, "Snapshot", "%s", *text.Message)
	return ctrl.Result{RequeueAfter: wait}, nil
}

// copy says of a VolumeSnapshot what its content says. What is recorded stays: one that is ready remains so, and has the
// time and the size that it had.
func (r *reporter) copy(ctx context.Context, snapshot *snapshotv1.VolumeSnapshot, content *snapshotv1.VolumeSnapshotContent) error {
	if isComplete(snapshot) {
		return nil
	}
	before := snapshot.DeepCopy()
	said := ptr.Deref(content.Status, snapshotv1.VolumeSnapshotContentStatus{})
	if snapshot.Status == nil {
		snapshot.Status = &snapshotv1.VolumeSnapshotStatus{}
	}
	status := snapshot.Status
	status.BoundVolumeSnapshotContentName = &content.Name
	if status.CreationTime == nil && said.CreationTime != nil {
		status.CreationTime = new(metav1.NewTime(time.Unix(0, *said.CreationTime)))
	}
	if (status.RestoreSize == nil || status.RestoreSize.IsZero()) && ptr.Deref(said.RestoreSize, 0) > 0 {
		status.RestoreSize = resource.NewQuantity(*said.RestoreSize, resource.BinarySI)
	}
	status.ReadyToUse, status.Error = new(ptr.Deref(said.ReadyToUse, false)), said.Error
	if apiequality.Semantic.DeepEqual(before.Status, status) {
		return nil
	}
	if err := r.write(ctx, snapshot, before); err != nil {
		return err
	}
	if status.CreationTime != nil && (before.Status == nil || before.Status.CreationTime == nil) {
		r.say(snapshot, event.SnapshotCreated, "the driver made the snapshot")
	}
	if snapshots.IsReady(snapshot) {
		r.say(snapshot, event.SnapshotReady, "claims can be restored from the snapshot")
	}
	return nil
}

func (r *reporter) write(ctx context.Context, snapshot, before *snapshotv1.VolumeSnapshot) error {
	err := r.client.Status().Patch(ctx, snapshot, patch.Fenced(before))
	return wrap.Error(err, "writing the status of VolumeSnapshot %s", client.ObjectKeyFromObject(snapshot))
}

func (r *reporter) making(snapshot *snapshotv1.VolumeSnapshot) {
	r.say(snapshot, event.CreatingSnapshot, "the driver is to make the snapshot")
}

// pending says why a deleted VolumeSnapshot is kept.
func (r *reporter) pending(snapshot *snapshotv1.VolumeSnapshot, why string) {
	if r.last.IsNew(client.ObjectKeyFromObject(snapshot), why) {
		r.events.Eventf(snapshot, nil, corev1.EventTypeWarning, event.SnapshotDeletePending, "Snapshot", "the snapshot is kept while %s", why)
	}
}

func (r *reporter) say(snapshot *snapshotv1.VolumeSnapshot, reason, text string) {
	r.events.Eventf(snapshot, nil, corev1.EventTypeNormal, reason, "Snapshot", "%s", text)
}
