// Package snapshots has the words by which the parts that make a snapshot understand each other: the annotations and
// finalizers of external-snapshotter, and what a VolumeSnapshot and its content say of each other.
//
// The reconcilers of VolumeSnapshots, of their contents and of claims use it. It reads and writes nothing.
package snapshots

import (
	"slices"

	groupsnapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumegroupsnapshot/v1"
	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend/named"
)

// Annotations that snapshot-controller and csi-snapshotter write and read.
const (
	// BeingCreated is the intent: a call that makes the snapshot of a content may have had its effect, and its
	// handle isn't recorded. While a content has it, its snapshot isn't deleted.
	BeingCreated = "snapshot.storage.kubernetes.io/volumesnapshot-being-created"
	// BeingDeleted says that the VolumeSnapshot of a content is deleted, and that nothing restores it any more.
	BeingDeleted = "snapshot.storage.kubernetes.io/volumesnapshot-being-deleted"
	// Removing is Stowage's own: a call that deletes the snapshot of a deleted content may have had its effect. From then on
	// the snapshot isn't kept any more, though a VolumeSnapshot is bound to the content.
	Removing = "stowage.dev/snapshot-removing"
	// AllowModeChange is on a content whose snapshot may be restored with another volumeMode.
	AllowModeChange = "snapshot.storage.kubernetes.io/allow-volume-mode-change"
	// DefaultClass is on the VolumeSnapshotClass of VolumeSnapshots that name none, with the value true.
	DefaultClass = "snapshot.storage.kubernetes.io/is-default-class"
	// DeletionSecretName and DeletionSecretNamespace are on a content. They name the Secret with which csi-snapshotter
	// deletes the snapshot.
	DeletionSecretName      = "snapshot.storage.kubernetes.io/deletion-secret-name"
	DeletionSecretNamespace = "snapshot.storage.kubernetes.io/deletion-secret-namespace"
)

// Finalizers of external-snapshotter.
const (
	// ContentProtection keeps a content until its snapshot is deleted or released.
	ContentProtection = "snapshot.storage.kubernetes.io/volumesnapshotcontent-bound-protection"
	// SourceProtection keeps a VolumeSnapshot while a claim is restored from it.
	SourceProtection = "snapshot.storage.kubernetes.io/volumesnapshot-as-source-protection"
	// BoundProtection keeps a VolumeSnapshot until its content is gone, which goes with it.
	BoundProtection = "snapshot.storage.kubernetes.io/volumesnapshot-bound-protection"
	// ClaimProtection keeps a claim while snapshots of its volume are made.
	ClaimProtection = "snapshot.storage.kubernetes.io/pvc-as-source-protection"
)

// ClassOf is a class as the code of both kinds of snapshots has it: that of a group has the same fields.
func ClassOf(class runtime.Object) *snapshotv1.VolumeSnapshotClass {
	if class, is := class.(*groupsnapshotv1.VolumeGroupSnapshotClass); is {
		return (*snapshotv1.VolumeSnapshotClass)(class)
	}
	return class.(*snapshotv1.VolumeSnapshotClass)
}

// ContentName is the name of the content that is made for the VolumeSnapshot with this UID.
func ContentName(owner types.UID) string { return "snapcontent-" + string(owner) }

// ContentNameOf is the name of the content that a VolumeSnapshot of a claim has, or gets.
func ContentNameOf(snapshot *snapshotv1.VolumeSnapshot) string {
	if Group(snapshot) != nil {
		return MemberContentName(snapshot)
	}
	return ContentName(snapshot.UID)
}

// UndeletableName is the name of the content that keeps the snapshot of a deleted content with this UID.
func UndeletableName(deleted types.UID) string { return "undeletable-" + string(deleted) }

// SourceClaim returns the name of the claim that a VolumeSnapshot is made of; "" for none.
func SourceClaim(snapshot *snapshotv1.VolumeSnapshot) string {
	return ptr.Deref(snapshot.Spec.Source.PersistentVolumeClaimName, "")
}

// BoundContent returns the name of the content that a VolumeSnapshot is bound to; "" for none.
func BoundContent(snapshot *snapshotv1.VolumeSnapshot) string {
	if snapshot.Status == nil {
		return ""
	}
	return ptr.Deref(snapshot.Status.BoundVolumeSnapshotContentName, "")
}

// IsBegun reports whether Stowage recorded a StorageBackend on a content of its own driver's, as it does before each effect. Then it
// goes on, though csi-snapshotter serves the driver by now. It doesn't with a snapshot that a CSI socket made for csi-snapshotter.
func IsBegun(content *snapshotv1.VolumeSnapshotContent) bool {
	handle := ptr.Deref(content.Spec.Source.SnapshotHandle, "")
	if handle == "" && content.Status != nil {
		handle = ptr.Deref(content.Status.SnapshotHandle, "")
	}
	return content.Labels[stowagev1alpha1.BackendLabel] != "" && !named.IsSnapshot(handle)
}

// Protections are the finalizers of a VolumeSnapshot, apart from its group's.
var Protections = []string{SourceProtection, BoundProtection}

// IsProtected reports whether a VolumeSnapshot has one of its finalizers, apart from its group's.
func IsProtected(snapshot *snapshotv1.VolumeSnapshot) bool {
	return slices.ContainsFunc(Protections, func(finalizer string) bool { return controllerutil.ContainsFinalizer(snapshot, finalizer) })
}

// IsReady reports whether claims can be restored from a VolumeSnapshot.
func IsReady(snapshot *snapshotv1.VolumeSnapshot) bool {
	return snapshot.Status != nil && ptr.Deref(snapshot.Status.ReadyToUse, false)
}

// IsOf reports whether a content names a VolumeSnapshot by its UID: one of the same name may have been there before.
func IsOf(content *snapshotv1.VolumeSnapshotContent, snapshot *snapshotv1.VolumeSnapshot) bool {
	return IsFor(content, snapshot) && content.Spec.VolumeSnapshotRef.UID == snapshot.UID
}

// IsGiven reports whether an administrator made a content of a snapshot that was there: only administrators make contents.
// snapshot-controller makes those of a group's members.
func IsGiven(content *snapshotv1.VolumeSnapshotContent) bool {
	named := content.Spec.Source.SnapshotHandle
	return named != nil && content.Status != nil && ptr.Deref(content.Status.SnapshotHandle, "") == *named && !IsContentInGroup(content)
}

// IsFor reports whether a content names a VolumeSnapshot, at least by its name.
func IsFor(content *snapshotv1.VolumeSnapshotContent, snapshot *snapshotv1.VolumeSnapshot) bool {
	ref := content.Spec.VolumeSnapshotRef
	return ref.Namespace == snapshot.Namespace && ref.Name == snapshot.Name
}
