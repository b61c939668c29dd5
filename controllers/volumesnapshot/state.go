package volumesnapshot

import (
	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"

	"github.com/stowage-dev/stowage/internal/snapshotbinding"
	"github.com/stowage-dev/stowage/internal/snapshots"
)

// bindable is a VolumeSnapshot as it is bound. It gets a status, in memory.
func bindable(snapshot *snapshotv1.VolumeSnapshot) snapshotbinding.Snapshot {
	if snapshot.Status == nil {
		snapshot.Status = &snapshotv1.VolumeSnapshotStatus{}
	}
	status, made := snapshot.Status, snapshots.ContentNameOf(snapshot)
	return snapshotbinding.Snapshot{
		Object: snapshot, Class: &snapshot.Spec.VolumeSnapshotClassName, Given: snapshot.Spec.Source.VolumeSnapshotContentName, Made: made,
		Bound: &status.BoundVolumeSnapshotContentName, Ready: &status.ReadyToUse, Created: &status.CreationTime, Error: &status.Error, Size: &status.RestoreSize,
	}
}

// isUnboundMember reports whether a VolumeSnapshot is of a group, and still to be bound to its content.
func isUnboundMember(snapshot *snapshotv1.VolumeSnapshot) bool {
	return snapshots.IsInGroup(snapshot) && snapshots.BoundContent(snapshot) == "" && snapshot.DeletionTimestamp.IsZero()
}

// finalizers are those of a VolumeSnapshot whose content has this policy, apart from its group's.
func finalizers(snapshot *snapshotv1.VolumeSnapshot, policy snapshotv1.DeletionPolicy) []string {
	if policy == snapshotv1.VolumeSnapshotContentDelete && !snapshots.IsInGroup(snapshot) {
		return snapshots.Protections
	}
	return []string{snapshots.SourceProtection}
}
