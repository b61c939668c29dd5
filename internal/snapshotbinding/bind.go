package snapshotbinding

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/stowage-dev/stowage/internal/patch"
	"github.com/stowage-dev/stowage/internal/snapshots"
	"github.com/stowage-dev/stowage/internal/wrap"
)

// Find reads the content of a snapshot, and reports whether there is one. It may be made, and not be in the status yet.
func (b *Binder) Find(ctx context.Context, from client.Reader, of Snapshot, into client.Object) (bool, error) {
	err := from.Get(ctx, client.ObjectKey{Name: of.ContentName()}, into)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil, wrap.Error(err, "reading %sContent %s", b.Kind.Name, of.ContentName())
}

// CheckUnmade returns why the content of a snapshot that isn't there is not to be made. That of one that was bound is never made
// again: the snapshot would have the data of another time.
func (b *Binder) CheckUnmade(of Snapshot) error {
	switch {
	case of.Given != nil:
		return snapshots.NewProblem(b.Kind.Reasons.Missing, "%sContent %s is missing: create it", b.Kind.Name, of.ContentName())
	case of.IsBound():
		return snapshots.NewProblem(b.Kind.Reasons.Missing, "%sContent %s is missing, and is not made again, with the data of another time: create another %s",
			b.Kind.Name, of.ContentName(), b.Kind.Name)
	}
	return nil
}

// Make makes the content of a snapshot. The claims are protected first, as the live read shows them: so they are still bound to the
// volumes. The content has its finalizer from the start.
func (b *Binder) Make(ctx context.Context, of Snapshot, content Content, claims []corev1.PersistentVolumeClaim, finalizers ...string) error {
	if err := b.keep(ctx, of, finalizers); err != nil {
		return err
	}
	var protected []types.NamespacedName
	for i := range claims {
		if err := b.Protect(ctx, &claims[i]); err != nil {
			return err
		}
		protected = append(protected, client.ObjectKeyFromObject(&claims[i]))
	}
	if err := b.Client.Create(ctx, content.Object); err != nil {
		return wrap.Error(err, "creating %sContent %s", b.Kind.Name, content.GetName())
	}
	if err := b.EndUnowned(ctx, of.Object, content, protected...); err != nil {
		return err
	}
	b.say(of, b.Kind.Making)
	return nil
}

// Tie ties a content to its snapshot by the UID, if they belong together, and protects both.
func (b *Binder) Tie(ctx context.Context, of Snapshot, content Content, finalizers ...string) error {
	err := content.check(b.Kind, of)
	if err == nil {
		err = b.keep(ctx, of, finalizers)
	}
	if err != nil {
		return err
	}
	return content.tie(ctx, b.Client, of, b.Kind.Reasons.BindFailed)
}

// IsTied reports whether a snapshot and its content have all that Tie gives them.
func (b *Binder) IsTied(of Snapshot, content Content, finalizers ...string) bool {
	return content.check(b.Kind, of) == nil && content.isOf(of) && hasAll(of, finalizers) &&
		(!content.GetDeletionTimestamp().IsZero() || controllerutil.ContainsFinalizer(content, content.Protection))
}

func hasAll(of Snapshot, finalizers []string) bool {
	return !slices.ContainsFunc(finalizers, func(finalizer string) bool { return !controllerutil.ContainsFinalizer(of, finalizer) })
}

// keep keeps a snapshot from going before what is restored from it, and before its content.
func (b *Binder) keep(ctx context.Context, of Snapshot, finalizers []string) error {
	if hasAll(of, finalizers) {
		return nil
	}
	before := of.DeepCopyObject().(client.Object)
	for _, finalizer := range finalizers {
		controllerutil.AddFinalizer(of.Object, finalizer)
	}
	return wrap.Error(b.Client.Patch(ctx, of.Object, patch.Fenced(before)), "protecting %s %s", b.Kind.Name, client.ObjectKeyFromObject(of))
}
