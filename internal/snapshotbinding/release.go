package snapshotbinding

import (
	"context"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/stowage-dev/stowage/internal/patch"
	"github.com/stowage-dev/stowage/internal/wake"
	"github.com/stowage-dev/stowage/internal/wrap"
)

// End ends the content of a deleted snapshot once no claim is restored from these VolumeSnapshots, and reports whether the snapshot
// may go. With policy Delete, the end of the content wakes it.
func (b *Binder) End(ctx context.Context, of Snapshot, content Content, restored ...*snapshotv1.VolumeSnapshot) (bool, ctrl.Result, error) {
	if !content.isOf(of) {
		return true, ctrl.Result{}, nil
	}
	claim, err := b.Restoring(ctx, of.GetNamespace(), restored...)
	switch {
	case err != nil:
		return false, ctrl.Result{}, err
	case claim != "":
		b.Pending(of, b.Kind.Restored, claim)
		return false, ctrl.Result{RequeueAfter: wake.WithoutAnswer}, nil
	}
	err = content.end(ctx, b.Client)
	return err == nil && *content.Policy != snapshotv1.VolumeSnapshotContentDelete, ctrl.Result{}, err
}

// Unprotect lets a deleted snapshot go.
func (b *Binder) Unprotect(ctx context.Context, of Snapshot, finalizers ...string) error {
	before := of.DeepCopyObject().(client.Object)
	for _, finalizer := range finalizers {
		controllerutil.RemoveFinalizer(of.Object, finalizer)
	}
	err := b.Client.Patch(ctx, of.Object, patch.Fenced(before))
	return wrap.Error(client.IgnoreNotFound(err), "letting %s %s go", b.Kind.Name, client.ObjectKeyFromObject(of))
}
