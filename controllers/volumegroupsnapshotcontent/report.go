package volumegroupsnapshotcontent

import (
	"context"
	"errors"

	groupsnapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumegroupsnapshot/v1"
	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/event"
	"github.com/stowage-dev/stowage/internal/message"
	"github.com/stowage-dev/stowage/internal/patch"
	"github.com/stowage-dev/stowage/internal/snapshots"
	"github.com/stowage-dev/stowage/internal/wake"
	"github.com/stowage-dev/stowage/internal/wrap"
)

// reporter writes what the storage says into the status of contents, and sends their events.
type reporter struct {
	client client.Client
	events events.EventRecorder
	clock  clock.PassiveClock
	last   event.Last
}

func (r *reporter) forget(name types.NamespacedName) { r.last.Forget(name) }

// made records a group snapshot. What is recorded stays, but for whether it is ready.
func (r *reporter) made(ctx context.Context, content *groupsnapshotv1.VolumeGroupSnapshotContent, made *backend.GroupSnapshot) (ctrl.Result, error) {
	before := content.DeepCopy()
	if content.Status == nil {
		content.Status = &groupsnapshotv1.VolumeGroupSnapshotContentStatus{}
	}
	status := content.Status
	if status.VolumeGroupSnapshotHandle == nil {
		status.VolumeGroupSnapshotHandle = &made.Handle
	}
	if status.CreationTime == nil {
		status.CreationTime = ptr.To(metav1.NewTime(made.Created))
		if made.Created.IsZero() {
			status.CreationTime = ptr.To(metav1.NewTime(r.clock.Now()))
		}
	}
	refreshInfo(status, made.Members)
	status.ReadyToUse, status.Error = &made.Ready, nil
	if !apiequality.Semantic.DeepEqual(before.Status, status) {
		if err := r.client.Status().Patch(ctx, content, patch.Fenced(before)); err != nil {
			return ctrl.Result{}, wrap.Error(err, "recording the group snapshot of VolumeGroupSnapshotContent %s", content.Name)
		}
	}
	if made.Ready {
		return ctrl.Result{}, nil
	}
	return ctrl.Result{RequeueAfter: snapshots.UntilReady}, nil
}

// refreshInfo writes what a status says of members. Their handles stay as they are, once they are there: all else is what
// the storage says now, because snapshot-controller writes it into their contents until the group is ready.
func refreshInfo(status *groupsnapshotv1.VolumeGroupSnapshotContentStatus, members []backend.Snapshot) {
	now := infoOf(members)
	if len(status.VolumeSnapshotInfoList) == 0 {
		status.VolumeSnapshotInfoList = now
	}
	for i := range status.VolumeSnapshotInfoList {
		had := &status.VolumeSnapshotInfoList[i]
		for _, info := range now {
			if info.SnapshotHandle == had.SnapshotHandle && info.VolumeHandle == had.VolumeHandle {
				*had = info
			}
		}
	}
}

// infoOf is what a status says of members, from which snapshot-controller makes their contents.
func infoOf(members []backend.Snapshot) []groupsnapshotv1.VolumeSnapshotInfo {
	var all []groupsnapshotv1.VolumeSnapshotInfo
	for _, member := range members {
		info := groupsnapshotv1.VolumeSnapshotInfo{VolumeHandle: member.Volume, SnapshotHandle: member.Handle, ReadyToUse: new(member.Ready)}
		if size := member.RestoreSize.Value(); size > 0 {
			info.RestoreSize = &size
		}
		if !member.Created.IsZero() {
			info.CreationTime = new(member.Created.UnixNano())
		}
		all = append(all, info)
	}
	return all
}

// failed records why there is no group snapshot yet, and when it is tried again. Work that goes on has no event: what is
// said of it changes.
func (r *reporter) failed(ctx context.Context, content *groupsnapshotv1.VolumeGroupSnapshotContent, reason string, failure error) (ctrl.Result, error) {
	if errors.Is(failure, backend.Queued) {
		// The answer wakes the content.
		return ctrl.Result{RequeueAfter: wake.WithoutAnswer}, nil
	}
	text := message.Cut(failure.Error(), message.MaxStatus)
	before := content.DeepCopy()
	if content.Status == nil {
		content.Status = &groupsnapshotv1.VolumeGroupSnapshotContentStatus{}
	}
	if had := content.Status.Error; had == nil || ptr.Deref(had.Message, "") != text || ptr.Deref(content.Status.ReadyToUse, true) {
		content.Status.Error = &snapshotv1.VolumeSnapshotError{Time: ptr.To(metav1.NewTime(r.clock.Now())), Message: &text}
		content.Status.ReadyToUse = ptr.To(false)
		if err := r.client.Status().Patch(ctx, content, patch.Fenced(before)); err != nil {
			return ctrl.Result{}, wrap.Error(err, "recording the error of VolumeGroupSnapshotContent %s", content.Name)
		}
	}
	if backend.KindOf(failure) != backend.InProgress {
		r.warn(content, reason, text)
	}
	return snapshots.Retry(failure)
}

// unreleased says why a content isn't let go yet.
func (r *reporter) unreleased(content *groupsnapshotv1.VolumeGroupSnapshotContent, failure error) (ctrl.Result, error) {
	if errors.Is(failure, backend.Queued) {
		return ctrl.Result{RequeueAfter: wake.WithoutAnswer}, nil
	}
	r.warn(content, event.GroupSnapshotDeleteError, failure.Error())
	return snapshots.Retry(failure)
}

func (r *reporter) warn(content *groupsnapshotv1.VolumeGroupSnapshotContent, reason, text string) {
	if r.last.IsNew(client.ObjectKeyFromObject(content), text) {
		r.events.Eventf(content, nil, corev1.EventTypeWarning, reason, "Snapshot", "%s", text)
	}
}

func (r *reporter) deleted(content *groupsnapshotv1.VolumeGroupSnapshotContent) {
	r.events.Eventf(content, nil, corev1.EventTypeNormal, event.SnapshotDeleted, "Snapshot", "the group snapshot was deleted from the storage")
}

func (r *reporter) kept(content, other *groupsnapshotv1.VolumeGroupSnapshotContent) {
	r.events.Eventf(content, nil, corev1.EventTypeNormal, event.SnapshotKept, "Snapshot",
		"the group snapshot stays: VolumeGroupSnapshotContent %s has it, too", other.Name)
}
