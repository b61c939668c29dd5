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

// check returns why a content isn't that of a VolumeSnapshot. One that a person made names it without its UID at first.
func check(snapshot *snapshotv1.VolumeSnapshot, content *snapshotv1.VolumeSnapshotContent) error {
	static, bound := snapshots.SourceClaim(snapshot) == "", snapshots.BoundContent(snapshot)
	unbound := static && snapshots.IsFor(content, snapshot) && content.Spec.VolumeSnapshotRef.UID == ""
	switch {
	case static && content.Spec.Source.SnapshotHandle == nil:
		return newProblem(event.SnapshotContentMismatch,
			"VolumeSnapshotContent %s has no snapshotHandle: name one that has, in a new VolumeSnapshot", content.Name)
	case !static && content.Spec.Source.VolumeHandle == nil:
		return newProblem(event.SnapshotContentMismatch,
			"VolumeSnapshotContent %s was not made for the VolumeSnapshot: it has no volumeHandle", content.Name)
	case !snapshots.IsOf(content, snapshot) && !unbound:
		return newProblem(event.SnapshotContentMisbound, "VolumeSnapshotContent %s is bound to a different snapshot", content.Name)
	case bound != "" && bound != content.Name:
		return newProblem(event.SnapshotMisbound, "the VolumeSnapshot is bound to VolumeSnapshotContent %s, and its own is %s", bound, content.Name)
	}
	return nil
}

// isComplete reports whether a VolumeSnapshot is bound and ready.
func isComplete(snapshot *snapshotv1.VolumeSnapshot) bool {
	return snapshots.IsReady(snapshot) && snapshots.BoundContent(snapshot) != ""
}

// finalizers are those of a VolumeSnapshot whose content has this policy.
func finalizers(policy snapshotv1.DeletionPolicy) []string {
	if policy == snapshotv1.VolumeSnapshotContentDelete {
		return []string{snapshots.SourceProtection, snapshots.BoundProtection}
	}
	return []string{snapshots.SourceProtection}
}

// isProtectedFor reports whether a VolumeSnapshot has the finalizers that it needs.
func isProtectedFor(snapshot *snapshotv1.VolumeSnapshot, policy snapshotv1.DeletionPolicy) bool {
	return !slices.ContainsFunc(finalizers(policy), func(finalizer string) bool { return !controllerutil.ContainsFinalizer(snapshot, finalizer) })
}

// isProtected reports whether a VolumeSnapshot has a finalizer of this package.
func isProtected(snapshot *snapshotv1.VolumeSnapshot) bool {
	return slices.ContainsFunc(finalizers(snapshotv1.VolumeSnapshotContentDelete), func(finalizer string) bool {
		return controllerutil.ContainsFinalizer(snapshot, finalizer)
	})
}

// isTied reports whether a VolumeSnapshot and its content have all that tie gives them.
func isTied(snapshot *snapshotv1.VolumeSnapshot, content *snapshotv1.VolumeSnapshotContent) bool {
	return check(snapshot, content) == nil && snapshots.IsOf(content, snapshot) && isProtectedFor(snapshot, content.Spec.DeletionPolicy) &&
		(!content.DeletionTimestamp.IsZero() || controllerutil.ContainsFinalizer(content, snapshots.ContentProtection))
}
