package volumesnapshot

import (
	"slices"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/stowage-dev/stowage/internal/snapshotbinding"
	"github.com/stowage-dev/stowage/internal/snapshots"
)

// bindable is a VolumeSnapshot as it is bound. It gets a status, in memory.
func bindable(snapshot *snapshotv1.VolumeSnapshot) snapshotbinding.Snapshot {
	if snapshot.Status == nil {
		snapshot.Status = &snapshotv1.VolumeSnapshotStatus{}
	}
	status, made := snapshot.Status, snapshots.ContentName(snapshot.UID)
	if snapshots.Group(snapshot) != nil {
		made = snapshots.MemberContentName(snapshot)
	}
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
		return protections
	}
	return []string{snapshots.SourceProtection}
}

// protections are the finalizers of this package.
var protections = []string{snapshots.SourceProtection, snapshots.BoundProtection}

// isProtected reports whether a VolumeSnapshot has a finalizer of this package.
func isProtected(snapshot *snapshotv1.VolumeSnapshot) bool {
	return slices.ContainsFunc(protections, func(finalizer string) bool { return controllerutil.ContainsFinalizer(snapshot, finalizer) })
}
