package facts

import (
	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
)

// RetainedSnapshot returns how long the snapshot of a deleted VolumeSnapshot is kept by a content. Nothing ends the window of a
// StorageBackend that is gone, or that was created again. In is false for a content that isn't in its window.
func RetainedSnapshot(content *snapshotv1.VolumeSnapshotContent, backends []stowagev1alpha1.StorageBackend) (kept Retention, in bool) {
	of, in := content.Labels[stowagev1alpha1.UndeletableLabel]
	if !in || !content.DeletionTimestamp.IsZero() {
		return Retention{}, false
	}
	if content.Spec.DeletionPolicy == snapshotv1.VolumeSnapshotContentRetain {
		return Retention{Kept: true}, true
	}
	for i := range backends {
		if string(backends[i].UID) == of {
			return Retention{Until: new(content.CreationTimestamp.Add(backends[i].Spec.Deletion.RetainSnapshotsFor.Duration))}, true
		}
	}
	return Retention{Kept: true}, true
}

// SnapshotOf is the VolumeSnapshot that a content names, as NAMESPACE/NAME.
func SnapshotOf(content *snapshotv1.VolumeSnapshotContent) string {
	return content.Spec.VolumeSnapshotRef.Namespace + "/" + content.Spec.VolumeSnapshotRef.Name
}
