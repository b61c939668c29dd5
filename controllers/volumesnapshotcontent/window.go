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
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/patch"
	"github.com/stowage-dev/stowage/internal/sharedread"
	"github.com/stowage-dev/stowage/internal/snapshots"
	"github.com/stowage-dev/stowage/internal/wrap"
)

// maxWindows is how many snapshots of one namespace are in their undelete windows at once. A tenant could fill the
// storage with them, and no quota of a namespace counts them.
const maxWindows = 1000

// windows are the undelete windows of snapshots: spec.deletion.retainSnapshotsFor of their StorageBackends. A content
// that is being deleted can't come back, and its VolumeSnapshot waits for its end. So another content, of no
// VolumeSnapshot, takes the snapshot over, and is deleted when the window ends.
type windows struct {
	client   client.Client
	backends *sharedread.Reads[string, *stowagev1alpha1.StorageBackend]
	targets  targets
	report   *reporter
	clock    clock.PassiveClock
}

// begin has another content take over the snapshot of a deleted VolumeSnapshot, and reports whether it did. There is no
// window for a content without a VolumeSnapshot, such as one whose window has ended, nor for a snapshot that was never
// complete, or whose deletion began. All are the contents that there are.
func (w windows) begin(
	ctx context.Context, content *snapshotv1.VolumeSnapshotContent, handle string, all []snapshotv1.VolumeSnapshotContent,
) (bool, error) {
	if content.Spec.VolumeSnapshotRef.UID == "" || isBeingRemoved(content) || !isReady(content) {
		return false, nil
	}
	of, err := w.targets.find(ctx, content)
	if err != nil {
		return false, err
	}
	object, err := w.current(ctx, of.object)
	if err != nil || windowOf(object) <= 0 {
		return false, err
	}
	if kept := inWindows(all, content.Spec.VolumeSnapshotRef.Namespace); kept >= maxWindows {
		w.report.noWindow(content, kept)
		return false, nil
	}
	next := undeletable(content, handle, object)
	status := next.Status
	// After a crash from here on, the next pass finds it as one that has the same snapshot.
	if err := w.client.Create(ctx, next); err != nil {
		return false, wrap.Error(err, "creating VolumeSnapshotContent %s for the undelete window", next.Name)
	}
	before := next.DeepCopy()
	next.Status = status
	if err := w.client.Status().Patch(ctx, next, client.MergeFrom(before)); err != nil {
		return false, wrap.Error(err, "recording the snapshot of VolumeSnapshotContent %s", next.Name)
	}
	w.report.windowBegan(content, next, next.CreationTimestamp.Add(windowOf(object)))
	return true, nil
}

// current reads a StorageBackend live: the cache may show a window of before.
func (w windows) current(ctx context.Context, cached *stowagev1alpha1.StorageBackend) (*stowagev1alpha1.StorageBackend, error) {
	object, err := w.backends.Get(ctx, cached.Name)
	return object, wrap.Error(err, "reading StorageBackend %s", cached.Name)
}

// undeletable is the content that takes over the snapshot of another. A VolumeSnapshot of the same name that names it
// has the snapshot again.
func undeletable(content *snapshotv1.VolumeSnapshotContent, handle string, object *stowagev1alpha1.StorageBackend) *snapshotv1.VolumeSnapshotContent {
	ref, status := content.Spec.VolumeSnapshotRef, content.Status.DeepCopy()
	status.SnapshotHandle, status.Error = &handle, nil
	next := &snapshotv1.VolumeSnapshotContent{
		ObjectMeta: metav1.ObjectMeta{
			Name: snapshots.UndeletableName(content.UID), Finalizers: []string{snapshots.ContentProtection},
			Labels: map[string]string{stowagev1alpha1.UndeletableLabel: string(object.UID)},
		},
		Spec: snapshotv1.VolumeSnapshotContentSpec{
			Driver: content.Spec.Driver, DeletionPolicy: snapshotv1.VolumeSnapshotContentDelete,
			Source:           snapshotv1.VolumeSnapshotContentSource{SnapshotHandle: &handle},
			SourceVolumeMode: content.Spec.SourceVolumeMode, VolumeSnapshotClassName: content.Spec.VolumeSnapshotClassName,
			VolumeSnapshotRef: corev1.ObjectReference{APIVersion: ref.APIVersion, Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name},
		},
		Status: status,
	}
	// The Secret is for csi-snapshotter, if the driver goes back to it.
	for _, name := range []string{snapshots.AllowModeChange, snapshots.DeletionSecretName, snapshots.DeletionSecretNamespace} {
		if value, has := content.Annotations[name]; has {
			metav1.SetMetaDataAnnotation(&next.ObjectMeta, name, value)
		}
	}
	record(next, object)
	return next
}

// inWindows counts the snapshots of a namespace that are in their windows.
func inWindows(all []snapshotv1.VolumeSnapshotContent, namespace string) int {
	count := 0
	for i := range all {
		if all[i].Spec.VolumeSnapshotRef.Namespace == namespace && isUndeletable(&all[i]) {
			count++
		}
	}
	return count
}

func windowOf(object *stowagev1alpha1.StorageBackend) time.Duration {
	return object.Spec.Deletion.RetainSnapshotsFor.Duration
}

// left returns how long the window of a content lasts. Its end is confirmed by a live read. Another StorageBackend of the
// same name ends no window: it is one of another cluster's, or was created again with other words.
func (w windows) left(ctx context.Context, content *snapshotv1.VolumeSnapshotContent) (time.Duration, error) {
	object, err := w.targets.of(ctx, content)
	if err != nil {
		return 0, err
	}
	if left := w.until(content, object); left > 0 {
		return left, nil
	}
	if object, err = w.current(ctx, object); err != nil {
		return 0, err
	}
	if string(object.UID) != backendOfWindow(content) {
		return 0, backend.Conflict.Errorf("the undelete window is one of another StorageBackend than %s, which has its name: nothing ends it. "+
			"Delete the content to delete its snapshot, or create the VolumeSnapshot %s/%s of it", object.Name,
			content.Spec.VolumeSnapshotRef.Namespace, content.Spec.VolumeSnapshotRef.Name)
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

// forget removes the label of a content that a VolumeSnapshot is bound to again, or that a person keeps.
func (w windows) forget(ctx context.Context, content *snapshotv1.VolumeSnapshotContent) error {
	before := content.DeepCopy()
	delete(content.Labels, stowagev1alpha1.UndeletableLabel)
	return wrap.Error(w.client.Patch(ctx, content, patch.Fenced(before)), "removing the label of VolumeSnapshotContent %s", content.Name)
}
