package volumesnapshotcontent

import (
	"context"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/patch"
	"github.com/stowage-dev/stowage/internal/snapshots"
	"github.com/stowage-dev/stowage/internal/wrap"
)

// windows are the undelete windows of snapshots: spec.deletion.retainSnapshotsFor of their StorageBackends. A content
// that is being deleted can't come back, and its VolumeSnapshot waits for its end. So another content, of no
// VolumeSnapshot, takes the snapshot over, and is deleted when the window ends.
type windows struct {
	client  client.Client
	live    client.Reader
	targets targets
	report  *reporter
	clock   clock.PassiveClock
}

// begin has another content take over the snapshot of a deleted VolumeSnapshot, and reports whether it did. There is no
// window for a content without a VolumeSnapshot, such as one whose window has ended.
func (w windows) begin(ctx context.Context, content *snapshotv1.VolumeSnapshotContent, handle string) (bool, error) {
	if content.Spec.VolumeSnapshotRef.UID == "" {
		return false, nil
	}
	of, err := w.targets.find(ctx, content)
	if err != nil || windowOf(of.object) <= 0 {
		return false, err
	}
	next := undeletable(content, handle)
	record(next, of.object)
	// After a crash, the next pass finds it as one that has the same snapshot.
	if err := w.client.Create(ctx, next); err != nil {
		return false, wrap.Error(err, "creating VolumeSnapshotContent %s for the undelete window", next.Name)
	}
	w.report.windowBegan(content, next, next.CreationTimestamp.Add(windowOf(of.object)))
	return true, nil
}

// undeletable is the content that takes over the snapshot of another. A VolumeSnapshot of the same name that names it
// has the snapshot again.
func undeletable(content *snapshotv1.VolumeSnapshotContent, handle string) *snapshotv1.VolumeSnapshotContent {
	ref := content.Spec.VolumeSnapshotRef
	next := &snapshotv1.VolumeSnapshotContent{
		ObjectMeta: metav1.ObjectMeta{
			Name: snapshots.UndeletableName(content.UID), Finalizers: []string{snapshots.ContentProtection},
			Labels: map[string]string{stowagev1alpha1.UndeletableLabel: ""},
		},
		Spec: snapshotv1.VolumeSnapshotContentSpec{
			Driver: content.Spec.Driver, DeletionPolicy: snapshotv1.VolumeSnapshotContentDelete,
			Source:           snapshotv1.VolumeSnapshotContentSource{SnapshotHandle: &handle},
			SourceVolumeMode: content.Spec.SourceVolumeMode, VolumeSnapshotClassName: content.Spec.VolumeSnapshotClassName,
			VolumeSnapshotRef: corev1.ObjectReference{APIVersion: ref.APIVersion, Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name},
		},
	}
	if mode, has := content.Annotations[snapshots.AllowModeChange]; has {
		metav1.SetMetaDataAnnotation(&next.ObjectMeta, snapshots.AllowModeChange, mode)
	}
	return next
}

func windowOf(object *stowagev1alpha1.StorageBackend) time.Duration {
	return object.Spec.Deletion.RetainSnapshotsFor.Duration
}

// left returns how long the window of a content lasts. The cache may show an earlier window: its end is confirmed by a
// live read.
func (w windows) left(ctx context.Context, content *snapshotv1.VolumeSnapshotContent) (time.Duration, error) {
	object, err := w.targets.of(ctx, content)
	if err != nil {
		return 0, err
	}
	left := w.until(content, object)
	if left > 0 {
		return left, nil
	}
	if err := w.live.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
		return 0, wrap.Error(err, "reading StorageBackend %s", object.Name)
	}
	return w.until(content, object), nil
}

func (w windows) until(content *snapshotv1.VolumeSnapshotContent, object *stowagev1alpha1.StorageBackend) time.Duration {
	return content.CreationTimestamp.Add(windowOf(object)).Sub(w.clock.Now())
}

// end deletes a content whose window is over, unless a VolumeSnapshot was bound to it since. Its snapshot goes with it.
func (w windows) end(ctx context.Context, content *snapshotv1.VolumeSnapshotContent) (ctrl.Result, error) {
	err := w.client.Delete(ctx, content, client.Preconditions{UID: &content.UID, ResourceVersion: &content.ResourceVersion})
	return ctrl.Result{}, wrap.Error(client.IgnoreNotFound(err), "deleting VolumeSnapshotContent %s at the end of its undelete window", content.Name)
}

// forget removes the label of a content that a VolumeSnapshot is bound to again.
func (w windows) forget(ctx context.Context, content *snapshotv1.VolumeSnapshotContent) error {
	before := content.DeepCopy()
	delete(content.Labels, stowagev1alpha1.UndeletableLabel)
	return wrap.Error(w.client.Patch(ctx, content, patch.Fenced(before)), "removing the label of VolumeSnapshotContent %s", content.Name)
}
