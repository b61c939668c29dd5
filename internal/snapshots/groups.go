package snapshots

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	groupsnapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumegroupsnapshot/v1"
	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// Annotations and finalizers of VolumeGroupSnapshots and their contents. They say what those of a VolumeSnapshot say.
const (
	GroupBeingCreated            = "groupsnapshot.storage.kubernetes.io/volumegroupsnapshot-being-created"
	GroupBeingDeleted            = "groupsnapshot.storage.kubernetes.io/volumegroupsnapshot-being-deleted"
	GroupDefaultClass            = "groupsnapshot.storage.kubernetes.io/is-default-class"
	GroupDeletionSecretName      = "groupsnapshot.storage.kubernetes.io/deletion-secret-name"
	GroupDeletionSecretNamespace = "groupsnapshot.storage.kubernetes.io/deletion-secret-namespace"
	GroupContentProtection       = "groupsnapshot.storage.kubernetes.io/volumegroupsnapshotcontent-bound-protection"
	GroupBoundProtection         = "groupsnapshot.storage.kubernetes.io/volumegroupsnapshot-bound-protection"
	// GroupMemberProtection keeps a VolumeSnapshot of a group until the group may go.
	GroupMemberProtection = "snapshot.storage.kubernetes.io/volumesnapshot-in-group-protection"
)

// GroupMember is on the content of a snapshot that was made together with others, with the handle of their group.
// snapshot-controller writes it when it makes the content, before the status.
const GroupMember = "groupsnapshot.storage.k8s.io/volumeGroupSnapshotHandle"

// groupKind is the kind of what owns the VolumeSnapshots that were made together.
const groupKind = "VolumeGroupSnapshot"

// GroupContentName is the name of the content that is made for the VolumeGroupSnapshot with this UID.
func GroupContentName(owner types.UID) string { return "groupsnapcontent-" + string(owner) }

// MemberNames are those of the VolumeSnapshot, and of its content, that a VolumeGroupSnapshot gets of a volume.
func MemberNames(owner types.UID, volume string) (snapshot, content string) {
	sum := sha256.Sum256([]byte(string(owner) + volume))
	return fmt.Sprintf("snapshot-%x", sum), fmt.Sprintf("snapcontent-%x", sum)
}

// MemberContentName is the name of the content of a VolumeSnapshot of a group. It may be made, and not be in the status yet.
func MemberContentName(member *snapshotv1.VolumeSnapshot) string {
	if name := BoundContent(member); name != "" {
		return name
	}
	return strings.Replace(member.Name, "snapshot-", "snapcontent-", 1)
}

// OwnedBy is what the VolumeSnapshots of a VolumeGroupSnapshot say of it.
func OwnedBy(group *groupsnapshotv1.VolumeGroupSnapshot) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: groupsnapshotv1.SchemeGroupVersion.String(), Kind: groupKind, Name: group.Name, UID: group.UID}
}

// Group returns what a VolumeSnapshot says of its VolumeGroupSnapshot; nil if none owns it.
func Group(snapshot *snapshotv1.VolumeSnapshot) *metav1.OwnerReference {
	at := slices.IndexFunc(snapshot.OwnerReferences, func(owner metav1.OwnerReference) bool { return owner.Kind == groupKind })
	if at < 0 {
		return nil
	}
	return &snapshot.OwnerReferences[at]
}

// IsGroupReady reports whether all snapshots of a VolumeGroupSnapshot are ready.
func IsGroupReady(group *groupsnapshotv1.VolumeGroupSnapshot) bool {
	return group.Status != nil && ptr.Deref(group.Status.ReadyToUse, false)
}

// IsInGroup reports whether a VolumeSnapshot was made together with others.
func IsInGroup(snapshot *snapshotv1.VolumeSnapshot) bool {
	return snapshot.Status != nil && snapshot.Status.VolumeGroupSnapshotName != nil || Group(snapshot) != nil
}

// IsContentInGroup reports whether the snapshot of a content was made together with others. It is deleted with them, and
// not on its own.
func IsContentInGroup(content *snapshotv1.VolumeSnapshotContent) bool {
	return metav1.HasAnnotation(content.ObjectMeta, GroupMember) || content.Status != nil && content.Status.VolumeGroupSnapshotHandle != nil
}

// IsContentMadeForGroup reports whether snapshot-controller made a content for a member of the group with a handle.
func IsContentMadeForGroup(content *snapshotv1.VolumeSnapshotContent, handle string) bool {
	return content.Annotations[GroupMember] == handle
}
