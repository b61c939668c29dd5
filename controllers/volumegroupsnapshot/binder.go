package volumegroupsnapshot

import (
	"context"
	"fmt"

	groupsnapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumegroupsnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/stowage-dev/stowage/internal/snapshotbinding"
	"github.com/stowage-dev/stowage/internal/snapshots"
)

// binder makes the contents of VolumeGroupSnapshots, or takes those that people made, and copies their status.
type binder struct {
	*snapshotbinding.Binder
	members *members
}

// bind makes or finds the content of a VolumeGroupSnapshot, ties the two, makes the members, and says of the group what the
// content says. The members come first: a group that is ready has them all.
func (b *binder) bind(ctx context.Context, group *groupsnapshotv1.VolumeGroupSnapshot) error {
	content := &groupsnapshotv1.VolumeGroupSnapshotContent{}
	found, err := b.Find(ctx, b.Live, bindable(group), content)
	switch {
	case err != nil:
		return err
	case found:
		err = b.Tie(ctx, bindable(group), contentOf(content), snapshots.GroupBoundProtection)
	default:
		content, err = b.make(ctx, group)
	}
	if err != nil {
		return err
	}
	ensure := b.members.ensure
	if isStatic(group) {
		ensure = b.members.adopt
	}
	if err := ensure(ctx, group, content); err != nil {
		return err
	}
	if err := b.Copy(ctx, bindable(group), contentOf(content)); err != nil || !snapshots.IsGroupReady(group) {
		return err
	}
	return b.ReleaseAll(ctx, group.UID, group.Namespace)
}

// make makes the content of a VolumeGroupSnapshot.
func (b *binder) make(ctx context.Context, group *groupsnapshotv1.VolumeGroupSnapshot) (*groupsnapshotv1.VolumeGroupSnapshotContent, error) {
	if err := b.CheckUnmade(bindable(group)); err != nil {
		return nil, err
	}
	claims, volumes, err := b.sources(ctx, group)
	if err != nil {
		return nil, err
	}
	class, err := b.Class(ctx, bindable(group), volumes[0].Spec.CSI.Driver)
	if err != nil {
		return nil, err
	}
	content, err := newContent(group, class, volumes)
	if err != nil {
		return nil, err
	}
	if err := b.NameSecret(contentOf(content), class); err != nil {
		return nil, err
	}
	return content, b.Make(ctx, bindable(group), contentOf(content), claims, snapshots.GroupBoundProtection)
}

// sources reads the claims that a VolumeGroupSnapshot selects, and their volumes.
func (b *binder) sources(ctx context.Context, group *groupsnapshotv1.VolumeGroupSnapshot) ([]corev1.PersistentVolumeClaim, []*corev1.PersistentVolume, error) {
	selector, err := metav1.LabelSelectorAsSelector(group.Spec.Source.Selector)
	if err != nil {
		return nil, nil, snapshots.NewProblem(kind.Reasons.CreationFailed, "the selector is invalid: %v: create another VolumeGroupSnapshot", err)
	}
	claims := &corev1.PersistentVolumeClaimList{}
	if err := b.Live.List(ctx, claims, client.InNamespace(group.Namespace), client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return nil, nil, fmt.Errorf("listing the claims of VolumeGroupSnapshot %s: %w", client.ObjectKeyFromObject(group), err)
	}
	if len(claims.Items) == 0 {
		return nil, nil, snapshots.NewProblem(kind.Reasons.CreationFailed, "no claim of the namespace has the labels %s: label one", selector)
	}
	var volumes []*corev1.PersistentVolume
	for i := range claims.Items {
		pv, err := b.Volume(ctx, &claims.Items[i], kind.Reasons.CreationFailed)
		if err != nil {
			return nil, nil, err
		}
		volumes = append(volumes, pv)
	}
	return claims.Items, volumes, nil
}

// release lets a deleted VolumeGroupSnapshot go once no claim is restored from a member and, with policy Delete, once its
// content is gone. The members are deleted first: from then on, no restore of one begins. They stay until the group may go.
func (b *binder) release(ctx context.Context, group *groupsnapshotv1.VolumeGroupSnapshot) (ctrl.Result, error) {
	if !controllerutil.ContainsFinalizer(group, snapshots.GroupBoundProtection) {
		return ctrl.Result{}, nil
	}
	of, err := b.members.delete(ctx, group)
	if err != nil {
		return ctrl.Result{}, err
	}
	content := &groupsnapshotv1.VolumeGroupSnapshotContent{}
	if _, err := b.Find(ctx, b.Live, bindable(group), content); err != nil {
		return ctrl.Result{}, err
	}
	if free, result, err := b.End(ctx, bindable(group), contentOf(content), of...); !free || err != nil {
		return result, err
	}
	for _, member := range of {
		if err := b.members.free(ctx, member); err != nil {
			return ctrl.Result{}, err
		}
	}
	if err := b.ReleaseAll(ctx, group.UID, group.Namespace); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, b.Unprotect(ctx, bindable(group), snapshots.GroupBoundProtection)
}
