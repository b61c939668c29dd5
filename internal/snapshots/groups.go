package snapshots

import (
	"slices"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Annotations and the finalizer of VolumeGroupSnapshotContents. They say what those of a VolumeSnapshotContent say.
const (
	GroupBeingCreated      = "groupsnapshot.storage.kubernetes.io/volumegroupsnapshot-being-created"
	GroupBeingDeleted      = "groupsnapshot.storage.kubernetes.io/volumegroupsnapshot-being-deleted"
	GroupContentProtection = "groupsnapshot.storage.kubernetes.io/volumegroupsnapshotcontent-bound-protection"
)

// groupMember is on the content of a snapshot that was made together with others, with the handle of their group.
// snapshot-controller writes it when it makes the content, before the status.
const groupMember = "groupsnapshot.storage.k8s.io/volumeGroupSnapshotHandle"

// groupKind is the kind of what owns the VolumeSnapshots that were made together.
const groupKind = "VolumeGroupSnapshot"

// IsInGroup reports whether a VolumeSnapshot was made together with others.
func IsInGroup(snapshot *snapshotv1.VolumeSnapshot) bool {
	return snapshot.Status != nil && snapshot.Status.VolumeGroupSnapshotName != nil ||
		slices.ContainsFunc(snapshot.OwnerReferences, func(owner metav1.OwnerReference) bool { return owner.Kind == groupKind })
}

// IsContentInGroup reports whether the snapshot of a content was made together with others. It is deleted with them, and
// not on its own.
func IsContentInGroup(content *snapshotv1.VolumeSnapshotContent) bool {
	return metav1.HasAnnotation(content.ObjectMeta, groupMember) || content.Status != nil && content.Status.VolumeGroupSnapshotHandle != nil
}

// IsContentMadeForGroup reports whether snapshot-controller made a content for a member of the group with a handle.
func IsContentMadeForGroup(content *snapshotv1.VolumeSnapshotContent, handle string) bool {
	return content.Annotations[groupMember] == handle
}
