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
	"github.com/stowage-dev/stowage/internal/message"
	"github.com/stowage-dev/stowage/internal/patch"
	"github.com/stowage-dev/stowage/internal/snapshots"
	"github.com/stowage-dev/stowage/internal/wrap"
)

// backoff is the first delay of a retry, and backoffMax the last.
const backoff, backoffMax = time.Second, 5 * time.Minute

// reporter writes the status of VolumeSnapshots, and sends their events.
type reporter struct {
	client client.Client
	events events.EventRecorder
	clock  clock.PassiveClock
	last   event.Last
}

// failed records a problem, and when it is looked at again: after as long as it has lasted.
func (r *reporter) failed(ctx context.Context, snapshot *snapshotv1.VolumeSnapshot, failure *problem) (ctrl.Result, error) {
	text, now := message.Cut(failure.text, message.MaxStatus), metav1.NewTime(r.clock.Now())
	before := snapshot.DeepCopy()
	if snapshot.Status == nil {
		snapshot.Status = &snapshotv1.VolumeSnapshotStatus{}
	}
	status := snapshot.Status
	if had := status.Error; had != nil && ptr.Deref(had.Message, "") == text && !ptr.Deref(status.ReadyToUse, true) {
		return ctrl.Result{RequeueAfter: min(max(now.Sub(ptr.Deref(had.Time, now).Time), backoff), backoffMax)}, nil
	}
	status.Error, status.ReadyToUse = &snapshotv1.VolumeSnapshotError{Time: &now, Message: &text}, new(false)
	if err := r.write(ctx, snapshot, before); err != nil {
		return ctrl.Result{}, err
	}
	r.events.Eventf(snapshot, nil, corev1.EventTypeWarning, failure.reason, "Snapshot", "%s", text)
	return ctrl.Result{RequeueAfter: backoff}, nil
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

// pending says which claim keeps a deleted VolumeSnapshot.
func (r *reporter) pending(snapshot *snapshotv1.VolumeSnapshot, claim string) {
	if r.last.IsNew(client.ObjectKeyFromObject(snapshot), claim) {
		r.events.Eventf(snapshot, nil, corev1.EventTypeWarning, event.SnapshotDeletePending, "Snapshot", "the snapshot is kept while claim %s is restored from it", claim)
	}
}

func (r *reporter) say(snapshot *snapshotv1.VolumeSnapshot, reason, text string) {
	r.events.Eventf(snapshot, nil, corev1.EventTypeNormal, reason, "Snapshot", "%s", text)
}
