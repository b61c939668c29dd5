package volumesnapshotcontent

import (
	"context"
	"errors"
	"fmt"
	"time"

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

// made records a snapshot. What is recorded stays, but for whether it is ready.
func (r *reporter) made(ctx context.Context, content *snapshotv1.VolumeSnapshotContent, made *backend.Snapshot) (ctrl.Result, error) {
	before := content.DeepCopy()
	if content.Status == nil {
		content.Status = &snapshotv1.VolumeSnapshotContentStatus{}
	}
	status := content.Status
	created := made.Created
	if created.IsZero() {
		created = r.clock.Now()
	}
	if status.SnapshotHandle == nil {
		status.SnapshotHandle = &made.Handle
	}
	if status.CreationTime == nil {
		status.CreationTime = ptr.To(created.UnixNano())
	}
	if size := made.RestoreSize.Value(); status.RestoreSize == nil && size > 0 {
		status.RestoreSize = &size
	}
	if status.VolumeGroupSnapshotHandle == nil && made.Group != "" {
		status.VolumeGroupSnapshotHandle = &made.Group
	}
	status.ReadyToUse, status.Error = &made.Ready, nil
	if !apiequality.Semantic.DeepEqual(before.Status, status) {
		if err := r.client.Status().Patch(ctx, content, patch.Fenced(before)); err != nil {
			return ctrl.Result{}, wrap.Error(err, "recording the snapshot of VolumeSnapshotContent %s", content.Name)
		}
	}
	if made.Ready {
		return ctrl.Result{}, nil
	}
	return ctrl.Result{RequeueAfter: snapshots.UntilReady}, nil
}

// failed records why there is no snapshot yet, and when it is tried again. Work that goes on has no event: what is
// said of it changes.
func (r *reporter) failed(ctx context.Context, content *snapshotv1.VolumeSnapshotContent, reason string, failure error) (ctrl.Result, error) {
	if errors.Is(failure, backend.Queued) {
		// The answer wakes the content.
		return ctrl.Result{RequeueAfter: wake.WithoutAnswer}, nil
	}
	text := message.Cut(failure.Error(), message.MaxStatus)
	before := content.DeepCopy()
	if content.Status == nil {
		content.Status = &snapshotv1.VolumeSnapshotContentStatus{}
	}
	if had := content.Status.Error; had == nil || ptr.Deref(had.Message, "") != text || ptr.Deref(content.Status.ReadyToUse, true) {
		content.Status.Error = &snapshotv1.VolumeSnapshotError{Time: ptr.To(metav1.NewTime(r.clock.Now())), Message: &text}
		content.Status.ReadyToUse = ptr.To(false)
		if err := r.client.Status().Patch(ctx, content, patch.Fenced(before)); err != nil {
			return ctrl.Result{}, wrap.Error(err, "recording the error of VolumeSnapshotContent %s", content.Name)
		}
	}
	if backend.KindOf(failure) != backend.InProgress {
		r.warn(content, reason, text)
	}
	return snapshots.Retry(failure)
}

// unreleased says why a content isn't let go yet.
func (r *reporter) unreleased(content *snapshotv1.VolumeSnapshotContent, failure error) (ctrl.Result, error) {
	if errors.Is(failure, backend.Queued) {
		return ctrl.Result{RequeueAfter: wake.WithoutAnswer}, nil
	}
	r.warn(content, event.SnapshotDeleteError, failure.Error())
	return snapshots.Retry(failure)
}

func (r *reporter) warn(content *snapshotv1.VolumeSnapshotContent, reason, text string) {
	if r.last.IsNew(client.ObjectKeyFromObject(content), text) {
		r.events.Eventf(content, nil, corev1.EventTypeWarning, reason, "Snapshot", "%s", text)
	}
}

func (r *reporter) deleted(content *snapshotv1.VolumeSnapshotContent) {
	r.events.Eventf(content, nil, corev1.EventTypeNormal, event.SnapshotDeleted, "Snapshot", "the snapshot was deleted from the storage")
}

func (r *reporter) kept(content, other *snapshotv1.VolumeSnapshotContent) {
	r.events.Eventf(content, nil, corev1.EventTypeNormal, event.SnapshotKept, "Snapshot",
		"the snapshot stays: VolumeSnapshotContent %s has it, too", other.Name)
}

// windowBegan says, also in the namespace of the VolumeSnapshot, that another content keeps the snapshot.
func (r *reporter) windowBegan(content, next *snapshotv1.VolumeSnapshotContent, until time.Time) {
	ref := content.Spec.VolumeSnapshotRef.DeepCopy()
	ref.APIVersion, ref.Kind = snapshotv1.SchemeGroupVersion.String(), "VolumeSnapshot"
	note := fmt.Sprintf("the snapshot of VolumeSnapshot %s/%s is kept by VolumeSnapshotContent %s until %s, and deleted then: docs/operate/undelete.md says "+
		"how to have it back", ref.Namespace, ref.Name, next.Name, until.UTC().Format(time.RFC3339))
	r.events.Eventf(next, nil, corev1.EventTypeNormal, event.UndeleteWindowBegan, "Delete", "%s", note)
	event.Unlogged(r.events).Eventf(ref, nil, corev1.EventTypeNormal, event.UndeleteWindowBegan, "Delete", "%s", note)
}

// noWindow says that a snapshot is deleted at once, because too many of its namespace are kept.
func (r *reporter) noWindow(content *snapshotv1.VolumeSnapshotContent, kept int) {
	r.warn(content, event.NoUndeleteWindow, fmt.Sprintf("the snapshot is deleted now, and can't come back: %d of namespace %s are in their undelete windows, "+
		"and more are not kept", kept, content.Spec.VolumeSnapshotRef.Namespace))
}
