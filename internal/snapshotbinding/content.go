package snapshotbinding

import (
	"context"
	"maps"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/stowage-dev/stowage/internal/patch"
	"github.com/stowage-dev/stowage/internal/snapshots"
	"github.com/stowage-dev/stowage/internal/wrap"
)

// Content is a content of either kind, and the fields by which it is tied and ended.
type Content struct {
	client.Object
	// UID and Class are those of the object that it names. All fields are the object's own, so they change with it.
	UID    *types.UID
	Class  **string
	Policy *snapshotv1.DeletionPolicy
	// Protection is its finalizer, and BeingDeleted its annotation.
	Protection, BeingDeleted string
}

// Tie ties a content to its object by the UID, and protects it. A problem has this reason.
func (c Content) Tie(ctx context.Context, to client.Client, owner client.Object, class *string, reason string) error {
	before := c.DeepCopyObject().(client.Object)
	changed := *c.UID == "" || *c.Class == nil && class != nil
	*c.UID = owner.GetUID()
	if *c.Class == nil {
		*c.Class = class
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

// End says on a content that its object is deleted and, with policy Delete, deletes it. The deletion is fenced: of a content
// whose policy changes just then, nothing is deleted.
func (c Content) End(ctx context.Context, to client.Client) error {
	if _, has := c.GetAnnotations()[c.BeingDeleted]; !has {
		before := c.DeepCopyObject().(client.Object)
		annotations := maps.Clone(c.GetAnnotations())
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[c.BeingDeleted] = "yes"
		c.SetAnnotations(annotations)
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
