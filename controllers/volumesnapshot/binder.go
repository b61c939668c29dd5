package volumesnapshot

import (
	"context"
	"fmt"
	"slices"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/stowage-dev/stowage/internal/event"
	"github.com/stowage-dev/stowage/internal/patch"
	"github.com/stowage-dev/stowage/internal/snapshotbinding"
	"github.com/stowage-dev/stowage/internal/snapshots"
	"github.com/stowage-dev/stowage/internal/wrap"
)

// binder makes the contents of VolumeSnapshots, or takes those that people made, and copies their status.
type binder struct {
	client  client.Client
	live    client.Reader
	claims  *snapshotbinding.Claims
	classes classes
	report  *reporter
}

// bind makes or finds the content of a VolumeSnapshot, ties the two, and says of the VolumeSnapshot what the content says.
func (b *binder) bind(ctx context.Context, snapshot *snapshotv1.VolumeSnapshot) error {
	content, err := b.contentOf(ctx, snapshot)
	switch {
	case err != nil:
		return err
	case content == nil:
		content, err = b.make(ctx, snapshot)
	default:
		err = b.tie(ctx, snapshot, content)
	}
	if err != nil {
		return err
	}
	if err := b.report.copy(ctx, snapshot, content); err != nil {
		return err
	}
	return release(ctx, b.claims, snapshot)
}

// release lets the claim go of a VolumeSnapshot that is ready, or is deleted.
func release(ctx context.Context, claims *snapshotbinding.Claims, snapshot *snapshotv1.VolumeSnapshot) error {
	name := snapshots.SourceClaim(snapshot)
	if name == "" || !snapshots.IsReady(snapshot) && snapshot.DeletionTimestamp.IsZero() {
		return nil
	}
	return claims.Release(ctx, snapshot.UID, snapshot.Namespace, name)
}

// contentOf reads the content of a VolumeSnapshot; nil if it is to be made. The content of one that was bound is never
// made again: the snapshot would have the data of another time.
func (b *binder) contentOf(ctx context.Context, snapshot *snapshotv1.VolumeSnapshot) (*snapshotv1.VolumeSnapshotContent, error) {
	content, err := readContent(ctx, b.live, snapshot)
	switch {
	case err != nil:
		return nil, err
	case content != nil:
		return content, check(snapshot, content)
	case snapshot.Spec.Source.VolumeSnapshotContentName != nil:
		return nil, snapshots.NewProblem(event.SnapshotContentMissing, "VolumeSnapshotContent %s is missing: create it", contentName(snapshot))
	case snapshots.BoundContent(snapshot) != "":
		return nil, snapshots.NewProblem(event.SnapshotContentMissing,
			"VolumeSnapshotContent %s is missing, and is not made again, with the data of another time: create another VolumeSnapshot", contentName(snapshot))
	}
	return nil, nil
}

// make makes the content of a VolumeSnapshot. The claim is protected first, as the live read shows it: so it is still bound to the
// volume. The content has its finalizer from the start.
func (b *binder) make(ctx context.Context, snapshot *snapshotv1.VolumeSnapshot) (*snapshotv1.VolumeSnapshotContent, error) {
	claim, pv, err := b.source(ctx, snapshot)
	if err != nil {
		return nil, err
	}
	class, err := b.classes.of(ctx, snapshot, pv)
	if err != nil {
		return nil, err
	}
	content, err := newContent(snapshot, class, pv)
	if err != nil {
		return nil, err
	}
	if err := b.ensureProtected(ctx, snapshot, class.DeletionPolicy); err != nil {
		return nil, err
	}
	if err := b.claims.Protect(ctx, claim); err != nil {
		return nil, err
	}
	if err := b.client.Create(ctx, content); err != nil {
		return nil, fmt.Errorf("creating VolumeSnapshotContent %s: %w", content.Name, err)
	}
	if err := b.claims.EndUnowned(ctx, snapshot, bindable(content), client.ObjectKeyFromObject(claim)); err != nil {
		return nil, err
	}
	b.report.making(snapshot)
	return content, nil
}

// source reads the claim that a VolumeSnapshot is made of, and its volume.
func (b *binder) source(ctx context.Context, snapshot *snapshotv1.VolumeSnapshot) (*corev1.PersistentVolumeClaim, *corev1.PersistentVolume, error) {
	claim, name := &corev1.PersistentVolumeClaim{}, snapshots.SourceClaim(snapshot)
	err := b.live.Get(ctx, client.ObjectKey{Namespace: snapshot.Namespace, Name: name}, claim)
	switch {
	case name == "" || apierrors.IsNotFound(err):
		return nil, nil, snapshots.NewProblem(event.SnapshotContentCreationFailed, "claim %s does not exist: create it", name)
	case err != nil:
		return nil, nil, fmt.Errorf("reading claim %s/%s: %w", snapshot.Namespace, name, err)
	}
	pv, err := b.claims.Volume(ctx, claim, event.SnapshotContentCreationFailed)
	return claim, pv, err
}

// tie ties a content to its VolumeSnapshot by the UID, and protects both.
func (b *binder) tie(ctx context.Context, snapshot *snapshotv1.VolumeSnapshot, content *snapshotv1.VolumeSnapshotContent) error {
	if err := b.ensureProtected(ctx, snapshot, content.Spec.DeletionPolicy); err != nil {
		return err
	}
	return bindable(content).Tie(ctx, b.client, snapshot, snapshot.Spec.VolumeSnapshotClassName, event.SnapshotBindFailed)
}

// ensureProtected keeps a VolumeSnapshot from going before what is restored from it, and before its content.
func (b *binder) ensureProtected(ctx context.Context, snapshot *snapshotv1.VolumeSnapshot, policy snapshotv1.DeletionPolicy) error {
	before := snapshot.DeepCopy()
	for _, finalizer := range finalizers(snapshot, policy) {
		controllerutil.AddFinalizer(snapshot, finalizer)
	}
	if slices.Equal(before.Finalizers, snapshot.Finalizers) {
		return nil
	}
	return wrap.Error(b.client.Patch(ctx, snapshot, patch.Fenced(before)), "protecting VolumeSnapshot %s", client.ObjectKeyFromObject(snapshot))
}
