package volumesnapshotcontent

import (
	"slices"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/event"
	"github.com/stowage-dev/stowage/internal/snapshotcontent"
	"github.com/stowage-dev/stowage/internal/snapshots"
)

// kind has the words of VolumeSnapshotContents.
var kind = &snapshotcontent.Kind{
	Snapshots: "VolumeSnapshot", Snapshot: "snapshot", Class: &snapshotv1.VolumeSnapshotClass{},
	Protection: snapshots.ContentProtection, BeingCreated: snapshots.BeingCreated, DeleteError: event.SnapshotDeleteError,
}

// servable is a content as it is served.
func servable(content *snapshotv1.VolumeSnapshotContent) snapshotcontent.Content {
	return snapshotcontent.Content{
		Object: content, Kind: kind, Meta: &content.ObjectMeta, Driver: content.Spec.Driver, ClassName: content.Spec.VolumeSnapshotClassName,
		Status: func() (failure **snapshotv1.VolumeSnapshotError, ready **bool) {
			if content.Status == nil {
				content.Status = &snapshotv1.VolumeSnapshotContentStatus{}
			}
			return &content.Status.Error, &content.Status.ReadyToUse
		},
	}
}

// mayRelease reports whether the snapshot of a deleted content is to be deleted, or left to its owner.
// Of a content with an open call the snapshot has no known handle: the call is repeated first.
func mayRelease(content *snapshotv1.VolumeSnapshotContent) bool {
	switch {
	case content.DeletionTimestamp.IsZero():
		return false
	case isBeingRemoved(content):
		return true
	case content.Spec.Source.SnapshotHandle != nil && content.Spec.VolumeSnapshotRef.UID == "":
		return true
	case isBeingCreated(content):
		return false
	default:
		return metav1.HasAnnotation(content.ObjectMeta, snapshots.BeingDeleted)
	}
}

// isSettled reports whether there is nothing to do for a content. One that is kept by finalizers of
// others is settled, too. The snapshot of a group's member is made with its group, and snapshot-controller records it.
func isSettled(content *snapshotv1.VolumeSnapshotContent) bool {
	switch {
	case mayRelease(content):
		return !slices.Contains(content.Finalizers, snapshots.ContentProtection)
	case snapshots.IsContentInGroup(content) && known(content) == "":
		return true
	default:
		return isReady(content) && !isBeingCreated(content)
	}
}

// isUndeletable reports whether a content keeps the snapshot of a deleted VolumeSnapshot, and has none of its own yet. A
// person keeps it for good by the policy Retain.
func isUndeletable(content *snapshotv1.VolumeSnapshotContent) bool {
	return backendOfWindow(content) != "" && content.DeletionTimestamp.IsZero() && content.Spec.VolumeSnapshotRef.UID == "" &&
		content.Spec.DeletionPolicy == snapshotv1.VolumeSnapshotContentDelete
}

// wasUndeletable reports whether the window of a content ended otherwise than by its deletion.
func wasUndeletable(content *snapshotv1.VolumeSnapshotContent) bool {
	return backendOfWindow(content) != "" && content.DeletionTimestamp.IsZero() && !isUndeletable(content)
}

// backendOfWindow returns the UID of the StorageBackend with the undelete window of a content; "" for no window.
func backendOfWindow(content *snapshotv1.VolumeSnapshotContent) string {
	return content.Labels[stowagev1alpha1.UndeletableLabel]
}

// isBeingRemoved reports whether the deletion of a content's snapshot began.
func isBeingRemoved(content *snapshotv1.VolumeSnapshotContent) bool {
	return metav1.HasAnnotation(content.ObjectMeta, snapshots.Removing)
}

func isBeingCreated(content *snapshotv1.VolumeSnapshotContent) bool {
	return metav1.HasAnnotation(content.ObjectMeta, snapshots.BeingCreated)
}

func isReady(content *snapshotv1.VolumeSnapshotContent) bool {
	return content.Status != nil && ptr.Deref(content.Status.ReadyToUse, false)
}

// recorded returns the handle in a content's status; "" for none.
func recorded(content *snapshotv1.VolumeSnapshotContent) string {
	if content.Status == nil {
		return ""
	}
	return ptr.Deref(content.Status.SnapshotHandle, "")
}

// known returns the handle that a person named, or else the recorded one; "" for none.
func known(content *snapshotv1.VolumeSnapshotContent) string {
	return ptr.Deref(content.Spec.Source.SnapshotHandle, recorded(content))
}

// isCleared reports whether the status is what release leaves of a snapshot that is gone. A search that failed leaves
// readyToUse.
func isCleared(content *snapshotv1.VolumeSnapshotContent) bool {
	return content.Status != nil && recorded(content) == "" && content.Status.ReadyToUse == nil
}

// keeps reports whether a content keeps the snapshot with a handle of a driver, though another content
// with the same handle is deleted. One that goes with its own snapshot doesn't.
func keeps(content *snapshotv1.VolumeSnapshotContent, driver, handle string) bool {
	has := recorded(content) == handle || ptr.Deref(content.Spec.Source.SnapshotHandle, "") == handle
	goes := !content.DeletionTimestamp.IsZero() && content.Spec.DeletionPolicy == snapshotv1.VolumeSnapshotContentDelete
	return has && content.Spec.Driver == driver && !goes
}
