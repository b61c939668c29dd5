package volumesnapshotcontent

import (
	"context"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/index"
	"github.com/stowage-dev/stowage/internal/snapshots"
	"github.com/stowage-dev/stowage/internal/wake"
)

// byOthers passes contents that another program changed, and those that are being deleted. What Stowage writes
// itself must not wake: a refused call would be repeated at once, and for ever. Of a group's member, snapshot-controller
// writes the status, too.
func byOthers() predicate.Funcs {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, now := e.ObjectOld.(*snapshotv1.VolumeSnapshotContent), e.ObjectNew.(*snapshotv1.VolumeSnapshotContent)
		return !now.DeletionTimestamp.IsZero() || isMemberSet(before, now) || !apiequality.Semantic.DeepEqual(ofOthers(before), ofOthers(now))
	}}
}

// isMemberSet reports whether snapshot-controller wrote the status of a group's member: the handle appeared, or the member
// isn't ready any more, without an error. Stowage does neither.
func isMemberSet(before, now *snapshotv1.VolumeSnapshotContent) bool {
	if !snapshots.IsContentInGroup(now) || now.Status == nil {
		return false
	}
	return recorded(before) == "" && recorded(now) != "" || isReady(before) && !isReady(now) && now.Status.Error == nil
}

// ofOthers is a content without what Stowage writes.
func ofOthers(content *snapshotv1.VolumeSnapshotContent) *snapshotv1.VolumeSnapshotContent {
	rest := content.DeepCopy()
	rest.Status, rest.ResourceVersion, rest.ManagedFields = nil, "", nil
	delete(rest.Annotations, snapshots.BeingCreated)
	delete(rest.Annotations, snapshots.Parameters)
	delete(rest.Labels, stowagev1alpha1.BackendLabel)
	return rest
}

// unsettled returns the contents of a backend's driver that wait for something, if only for the end of a window.
func (r *Reconciler) unsettled(ctx context.Context, object client.Object) []reconcile.Request {
	driver := backend.DriverOf(object.(*stowagev1alpha1.StorageBackend))
	contents := &snapshotv1.VolumeSnapshotContentList{}
	if err := r.client.List(ctx, contents, wake.Unhurried, client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "listing the contents of a driver", "driver", driver)
	}
	var found []reconcile.Request
	for i := range contents.Items {
		if content := &contents.Items[i]; content.Spec.Driver == driver && (!isSettled(content) || isUndeletable(content)) {
			found = append(found, wake.Request(content))
		}
	}
	return found
}

// contentsOfNodeVolume wakes the contents of a snapshot on a node after its agent wrote the status or, of contents that are
// deleted, removed it: the one that snapshot-controller made, and those that people made.
func (r *Reconciler) contentsOfNodeVolume(ctx context.Context, object client.Object) []reconcile.Request {
	made := object.(*stowagev1alpha1.NodeVolume)
	if made.Spec.SnapshotUID == "" {
		return nil
	}
	r.storage.Renew(made.Name)
	contents := &snapshotv1.VolumeSnapshotContentList{}
	err := r.client.List(ctx, contents, client.MatchingFields{index.ContentsByHandle: made.Name}, client.UnsafeDisableDeepCopy)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "listing the contents of a snapshot", "snapshot", made.Name)
	}
	content, name := &snapshotv1.VolumeSnapshotContent{}, snapshots.ContentName(made.Spec.SnapshotUID)
	err = r.client.Get(ctx, client.ObjectKey{Name: name}, content)
	if err == nil || made.DeletionTimestamp.IsZero() {
		content.Name = name // the cache may not show it yet
		contents.Items = append(contents.Items, *content)
	}
	var found []reconcile.Request
	for i := range contents.Items {
		// After a refusal, nothing is to be tried again at once.
		if each := &contents.Items[i]; made.DeletionTimestamp.IsZero() || !each.DeletionTimestamp.IsZero() {
			found = append(found, wake.Request(each))
		}
	}
	return found
}
