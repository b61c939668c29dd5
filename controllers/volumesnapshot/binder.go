package volumesnapshot

import (
	"context"
	"fmt"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/stowage-dev/stowage/internal/snapshotbinding"
	"github.com/stowage-dev/stowage/internal/snapshots"
)

// binder makes the contents of VolumeSnapshots, or takes those that people made, and copies their status.
type binder struct {
	*snapshotbinding.Binder
}

// bind makes or finds the content of a VolumeSnapshot, ties the two, and says of the VolumeSnapshot what the content says.
func (b *binder) bind(ctx context.Context, snapshot *snapshotv1.VolumeSnapshot) error {
	content := &snapshotv1.VolumeSnapshotContent{}
	found, err := b.Find(ctx, b.Live, bindable(snapshot), content)
	switch {
	case err != nil:
		return err
	case found:
		err = b.Tie(ctx, bindable(snapshot), contentOf(content), finalizers(snapshot, content.Spec.DeletionPolicy)...)
	default:
		content, err = b.make(ctx, snapshot)
	}
	if err != nil {
		return err
	}
	if err := b.Copy(ctx, bindable(snapshot), contentOf(content)); err != nil {
		return err
	}
	return b.releaseClaim(ctx, snapshot)
}

// make makes the content of a VolumeSnapshot.
func (b *binder) make(ctx context.Context, snapshot *snapshotv1.VolumeSnapshot) (*snapshotv1.VolumeSnapshotContent, error) {
	if err := b.CheckUnmade(bindable(snapshot)); err != nil {
		return nil, err
	}
	claim, pv, err := b.source(ctx, snapshot)
	if err != nil {
		return nil, err
	}
	class, err := b.Class(ctx, bindable(snapshot), pv.Spec.CSI.Driver)
	switch {
	case err != nil:
		return nil, err
	case class.Driver != pv.Spec.CSI.Driver:
		// Another driver may have a volume with the same handle.
		return nil, snapshots.NewProblem(kind.Reasons.CreationFailed, "VolumeSnapshotClass %s is of driver %.200q, and volume %s of %.200q: use a class of that driver",
			class.Name, class.Driver, pv.Name, pv.Spec.CSI.Driver)
	}
	content := newContent(snapshot, class, pv)
	if err := b.NameSecret(contentOf(content), class); err != nil {
		return nil, err
	}
	claims := []corev1.PersistentVolumeClaim{*claim}
	return content, b.Make(ctx, bindable(snapshot), contentOf(content), claims, finalizers(snapshot, class.DeletionPolicy)...)
}

// source reads the claim that a VolumeSnapshot is made of, and its volume.
func (b *binder) source(ctx context.Context, snapshot *snapshotv1.VolumeSnapshot) (*corev1.PersistentVolumeClaim, *corev1.PersistentVolume, error) {
	claim, name := &corev1.PersistentVolumeClaim{}, snapshots.SourceClaim(snapshot)
	err := b.Live.Get(ctx, client.ObjectKey{Namespace: snapshot.Namespace, Name: name}, claim)
	switch {
	case name == "" || apierrors.IsNotFound(err):
		return nil, nil, snapshots.NewProblem(kind.Reasons.CreationFailed, "claim %s does not exist: create it", name)
	case err != nil:
		return nil, nil, fmt.Errorf("reading claim %s/%s: %w", snapshot.Namespace, name, err)
	}
	pv, err := b.Volume(ctx, claim, kind.Reasons.CreationFailed)
	return claim, pv, err
}

// releaseClaim lets the claim go of a VolumeSnapshot that is ready, or is deleted.
func (b *binder) releaseClaim(ctx context.Context, snapshot *snapshotv1.VolumeSnapshot) error {
	name := snapshots.SourceClaim(snapshot)
	if name == "" || !snapshots.IsReady(snapshot) && snapshot.DeletionTimestamp.IsZero() {
		return nil
	}
	return b.Release(ctx, snapshot.UID, client.ObjectKey{Namespace: snapshot.Namespace, Name: name})
}

// release lets a deleted VolumeSnapshot go once no claim is restored from it and, with policy Delete, once its content is
// gone. Policy and content are those of a live read.
func (b *binder) release(ctx context.Context, snapshot *snapshotv1.VolumeSnapshot) (ctrl.Result, error) {
	if !snapshots.IsProtected(snapshot) {
		return ctrl.Result{}, nil
	}
	if controllerutil.ContainsFinalizer(snapshot, snapshots.GroupMemberProtection) {
		// The reconciler of groups removes it once the group may go.
		b.Pending(bindable(snapshot), "the snapshot is kept while its group is there: delete the VolumeGroupSnapshot")
		return ctrl.Result{}, nil
	}
	content := &snapshotv1.VolumeSnapshotContent{}
	if _, err := b.Find(ctx, b.Live, bindable(snapshot), content); err != nil {
		return ctrl.Result{}, err
	}
	if free, result, err := b.End(ctx, bindable(snapshot), contentOf(content), snapshot); !free || err != nil {
		return result, err
	}
	if err := b.releaseClaim(ctx, snapshot); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, b.Unprotect(ctx, bindable(snapshot), snapshots.Protections...)
}
