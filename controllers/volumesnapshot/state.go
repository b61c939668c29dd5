package volumesnapshot

import (
	"context"
	"fmt"
	"slices"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/stowage-dev/stowage/internal/event"
	"github.com/stowage-dev/stowage/internal/snapshots"
)

// contentName is the name of the content that a VolumeSnapshot has, or gets.
func contentName(snapshot *snapshotv1.VolumeSnapshot) string {
	if name := snapshot.Spec.Source.VolumeSnapshotContentName; name != nil {
		return *name
	}
	if snapshots.Group(snapshot) != nil {
		return snapshots.MemberContentName(snapshot)
	}
	return snapshots.ContentName(snapshot.UID)
}

// readContent reads that content; nil if there is none. It may be made, and not be in the status yet.
func readContent(ctx context.Context, from client.Reader, snapshot *snapshotv1.VolumeSnapshot) (*snapshotv1.VolumeSnapshotContent, error) {
	name := contentName(snapshot)
	content := &snapshotv1.VolumeSnapshotContent{}
	err := from.Get(ctx, client.ObjectKey{Name: name}, content)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading VolumeSnapshotContent %s: %w", name, err)
	}
	return content, nil
}

// reasons are those of the events of VolumeSnapshots and contents that don't belong together.
var reasons = snapshots.Reasons{
	Mismatch: event.SnapshotContentMismatch, ContentMisbound: event.SnapshotContentMisbound, Misbound: event.SnapshotMisbound,
}

// check returns why a content isn't that of a VolumeSnapshot.
func check(snapshot *snapshotv1.VolumeSnapshot, content *snapshotv1.VolumeSnapshotContent) error {
	pair := snapshots.Pair{
		Kind: "VolumeSnapshot", Of: snapshot, Bound: snapshots.BoundContent(snapshot), Static: snapshot.Spec.Source.VolumeSnapshotContentName != nil,
		Content: content.Name, Ref: content.Spec.VolumeSnapshotRef, Reasons: reasons,
		Handle: "snapshotHandle", HasHandle: content.Spec.Source.SnapshotHandle != nil,
		Volume: "volumeHandle", HasVolume: content.Spec.Source.VolumeHandle != nil,
	}
	return pair.Check()
}

// isUnboundMember reports whether a VolumeSnapshot is of a group, and still to be bound to its content.
func isUnboundMember(snapshot *snapshotv1.VolumeSnapshot) bool {
	return snapshots.IsInGroup(snapshot) && snapshots.BoundContent(snapshot) == "" && snapshot.DeletionTimestamp.IsZero()
}

// isComplete reports whether a VolumeSnapshot is bound and ready.
func isComplete(snapshot *snapshotv1.VolumeSnapshot) bool {
	return snapshots.IsReady(snapshot) && snapshots.BoundContent(snapshot) != ""
}

// finalizers are those of a VolumeSnapshot whose content has this policy, apart from its group's.
func finalizers(snapshot *snapshotv1.VolumeSnapshot, policy snapshotv1.DeletionPolicy) []string {
	if policy == snapshotv1.VolumeSnapshotContentDelete && !snapshots.IsInGroup(snapshot) {
		return protections
	}
	return []string{snapshots.SourceProtection}
}

// isProtectedFor reports whether a VolumeSnapshot has the finalizers that it needs.
func isProtectedFor(snapshot *snapshotv1.VolumeSnapshot, policy snapshotv1.DeletionPolicy) bool {
	return !slices.ContainsFunc(finalizers(snapshot, policy), func(finalizer string) bool { return !controllerutil.ContainsFinalizer(snapshot, finalizer) })
}

// protections are the finalizers of this package.
var protections = []string{snapshots.SourceProtection, snapshots.BoundProtection}

// isProtected reports whether a VolumeSnapshot has a finalizer of this package.
func isProtected(snapshot *snapshotv1.VolumeSnapshot) bool {
	return slices.ContainsFunc(protections, func(finalizer string) bool { return controllerutil.ContainsFinalizer(snapshot, finalizer) })
}

// isTied reports whether a VolumeSnapshot and its content have all that tie gives them.
func isTied(snapshot *snapshotv1.VolumeSnapshot, content *snapshotv1.VolumeSnapshotContent) bool {
	return check(snapshot, content) == nil && snapshots.IsOf(content, snapshot) && isProtectedFor(snapshot, content.Spec.DeletionPolicy) &&
		(!content.DeletionTimestamp.IsZero() || controllerutil.ContainsFinalizer(content, snapshots.ContentProtection))
}
