package snapshotbinding

import (
	"context"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/stowage-dev/stowage/internal/patch"
	"github.com/stowage-dev/stowage/internal/snapshots"
	"github.com/stowage-dev/stowage/internal/wrap"
)

// Content is a content of either kind, and what binds it.
type Content struct {
	client.Object
	// Meta, Ref, Class and Policy are the object's own, so they change with it.
	Meta   *metav1.ObjectMeta
	Ref    *corev1.ObjectReference
	Class  **string
	Policy *snapshotv1.DeletionPolicy
	// HasHandle and HasVolume report whether it names what is in the storage.
	HasHandle, HasVolume bool
	// Protection is its finalizer, and BeingDeleted its annotation.
	Protection, BeingDeleted string
	// These are what its status says. A group has no size.
	Ready   bool
	Created *metav1.Time
	Size    int64
	Error   *snapshotv1.VolumeSnapshotError
}

// check returns why a snapshot and a content don't belong together. A content that a person made names the other without its UID
// at first.
func (c Content) check(of *Kind, snapshot Snapshot) error {
	kind, name, reasons, static := of.Name, c.GetName(), of.Reasons, snapshot.Given != nil
	switch {
	case static && !c.HasHandle:
		return snapshots.NewProblem(reasons.Mismatch, "%sContent %s has no %s: name one that has, in a new %s", kind, name, of.Handle, kind)
	case !static && !c.HasVolume:
		return snapshots.NewProblem(reasons.Mismatch, "%sContent %s was not made for the %s: it has no %s", kind, name, kind, of.Volume)
	case !c.names(snapshot) || c.Ref.UID != snapshot.GetUID() && (c.Ref.UID != "" || !static):
		return snapshots.NewProblem(reasons.ContentMisbound, "%sContent %s is bound to a different snapshot", kind, name)
	case snapshot.IsBound() && **snapshot.Bound != name:
		return snapshots.NewProblem(reasons.Misbound, "the %s is bound to %sContent %s, and its own is %s", kind, kind, **snapshot.Bound, name)
	}
	return nil
}

// names reports whether a content names a snapshot, and isOf whether it does by its UID, too: one of the same name may have been
// there before.
func (c Content) names(of Snapshot) bool {
	return c.Ref.Namespace == of.GetNamespace() && c.Ref.Name == of.GetName()
}

func (c Content) isOf(of Snapshot) bool { return c.names(of) && c.Ref.UID == of.GetUID() }

// tie ties a content to its snapshot by the UID, and protects it. A problem has this reason.
func (c Content) tie(ctx context.Context, to client.Client, of Snapshot, reason string) error {
	before := c.DeepCopyObject().(client.Object)
	changed := c.Ref.UID == "" || *c.Class == nil && *of.Class != nil
	c.Ref.UID = of.GetUID()
	if *c.Class == nil {
		*c.Class = *of.Class
	}
	switch {
	case c.GetDeletionTimestamp().IsZero():
		changed = controllerutil.AddFinalizer(c.Object, c.Protection) || changed
	case changed:
		return snapshots.NewProblem(reason, "content %s is being deleted: create the snapshot again, with another content", c.GetName())
	}
	if !changed {
		return nil
	}
	return wrap.Error(to.Patch(ctx, c.Object, patch.Fenced(before)), "binding the content %s", c.GetName())
}

// end says on a content that its snapshot is deleted and, with policy Delete, deletes it. The deletion is fenced: of a content
// whose policy changes just then, nothing is deleted.
func (c Content) end(ctx context.Context, to client.Client) error {
	if _, has := c.GetAnnotations()[c.BeingDeleted]; !has {
		before := c.DeepCopyObject().(client.Object)
		metav1.SetMetaDataAnnotation(c.Meta, c.BeingDeleted, "yes")
		if err := to.Patch(ctx, c.Object, patch.Fenced(before)); err != nil {
			return wrap.Error(client.IgnoreNotFound(err), "saying that the object of the content %s is deleted", c.GetName())
		}
	}
	if *c.Policy != snapshotv1.VolumeSnapshotContentDelete || !c.GetDeletionTimestamp().IsZero() {
		return nil
	}
	err := to.Delete(ctx, c.Object, client.Preconditions{UID: new(c.GetUID()), ResourceVersion: new(c.GetResourceVersion())})
	return wrap.Error(client.IgnoreNotFound(err), "deleting the content %s", c.GetName())
}
