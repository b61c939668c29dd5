package volumegroupsnapshotcontent

import (
	"slices"

	groupsnapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumegroupsnapshot/v1"
	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/stowage-dev/stowage/internal/event"
	"github.com/stowage-dev/stowage/internal/snapshotcontent"
	"github.com/stowage-dev/stowage/internal/snapshots"
)

// kind has the words of VolumeGroupSnapshotContents.
var kind = &snapshotcontent.Kind{
	Snapshots: "VolumeGroupSnapshot", Snapshot: "group snapshot", Class: &groupsnapshotv1.VolumeGroupSnapshotClass{},
	Protection: snapshots.GroupContentProtection, BeingCreated: snapshots.GroupBeingCreated, DeleteError: event.GroupSnapshotDeleteError,
}

// servable is a content as it is served.
func servable(content *groupsnapshotv1.VolumeGroupSnapshotContent) snapshotcontent.Content {
	return snapshotcontent.Content{
		Object: content, Kind: kind, Meta: &content.ObjectMeta, Driver: content.Spec.Driver, ClassName: content.Spec.VolumeGroupSnapshotClassName,
		Status: func() (failure **snapshotv1.VolumeSnapshotError, ready **bool) {
			if content.Status == nil {
				content.Status = &groupsnapshotv1.VolumeGroupSnapshotContentStatus{}
			}
			return &content.Status.Error, &content.Status.ReadyToUse
		},
	}
}

// mayRelease reports whether the group snapshot of a deleted content is to be deleted, or left to its owner.
// Of a content with an open call the group snapshot has no known handle: the call is repeated first.
func mayRelease(content *groupsnapshotv1.VolumeGroupSnapshotContent) bool {
	switch {
	case content.DeletionTimestamp.IsZero():
		return false
	case content.Spec.Source.GroupSnapshotHandles != nil && content.Spec.VolumeGroupSnapshotRef.UID == "":
		return true
	case isBeingCreated(content):
		return false
	default:
		return metav1.HasAnnotation(content.ObjectMeta, snapshots.GroupBeingDeleted)
	}
}

// isSettled reports whether there is nothing to do for a content. One that is kept by finalizers of
// others is settled, too.
func isSettled(content *groupsnapshotv1.VolumeGroupSnapshotContent) bool {
	if mayRelease(content) {
		return !slices.Contains(content.Finalizers, snapshots.GroupContentProtection)
	}
	if !content.DeletionTimestamp.IsZero() && recorded(content) == "" && !isBeingCreated(content) {
		// Nothing was begun, and nothing is any more.
		return true
	}
	return isReady(content) && !isBeingCreated(content)
}

func isBeingCreated(content *groupsnapshotv1.VolumeGroupSnapshotContent) bool {
	return metav1.HasAnnotation(content.ObjectMeta, snapshots.GroupBeingCreated)
}

func isReady(content *groupsnapshotv1.VolumeGroupSnapshotContent) bool {
	return content.Status != nil && ptr.Deref(content.Status.ReadyToUse, false)
}

// recorded returns the handle in a content's status; "" for none.
func recorded(content *groupsnapshotv1.VolumeGroupSnapshotContent) string {
	if content.Status == nil {
		return ""
	}
	return ptr.Deref(content.Status.VolumeGroupSnapshotHandle, "")
}

// known returns the recorded handle, or else the one that a person named; "" for none.
func known(content *groupsnapshotv1.VolumeGroupSnapshotContent) string {
	if named := content.Spec.Source.GroupSnapshotHandles; recorded(content) == "" && named != nil {
		return named.VolumeGroupSnapshotHandle
	}
	return recorded(content)
}

// members returns the handles of the snapshots of a content: the recorded ones, or those that a person named.
func members(content *groupsnapshotv1.VolumeGroupSnapshotContent) []string {
	var handles []string
	if content.Status != nil {
		for i := range content.Status.VolumeSnapshotInfoList {
			handles = append(handles, content.Status.VolumeSnapshotInfoList[i].SnapshotHandle)
		}
	}
	if named := content.Spec.Source.GroupSnapshotHandles; len(handles) == 0 && named != nil {
		return named.VolumeSnapshotHandles
	}
	return handles
}

// keeps reports whether a content keeps the group snapshot with a handle of a driver, though another content
// with the same handle is deleted. One that goes with its own group snapshot doesn't.
func keeps(content *groupsnapshotv1.VolumeGroupSnapshotContent, driver, handle string) bool {
	goes := !content.DeletionTimestamp.IsZero() && content.Spec.DeletionPolicy == snapshotv1.VolumeSnapshotContentDelete
	return known(content) == handle && content.Spec.Driver == driver && !goes
}

// keepsMember reports whether the content of a single snapshot keeps one of these members of a group's content, whose
// handle this is. Those of the group's namespace are its own: snapshot-controller lets them go after the group. One that
// is deleted with its snapshot doesn't keep it either.
func keepsMember(content *snapshotv1.VolumeSnapshotContent, group *groupsnapshotv1.VolumeGroupSnapshotContent, handle string, members []string) bool {
	goes := !content.DeletionTimestamp.IsZero() && content.Spec.DeletionPolicy == snapshotv1.VolumeSnapshotContentDelete
	isMember := content.Spec.VolumeSnapshotRef.Namespace == group.Spec.VolumeGroupSnapshotRef.Namespace || snapshots.IsContentMadeForGroup(content, handle)
	if content.Spec.Driver != group.Spec.Driver || goes || isMember {
		return false
	}
	recorded := ""
	if content.Status != nil {
		recorded = ptr.Deref(content.Status.SnapshotHandle, "")
	}
	return slices.Contains(members, ptr.Deref(content.Spec.Source.SnapshotHandle, recorded))
}
