package volumegroupsnapshot

import (
	"context"
	"fmt"

	groupsnapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumegroupsnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/stowage-dev/stowage/internal/event"
	"github.com/stowage-dev/stowage/internal/patch"
	"github.com/stowage-dev/stowage/internal/snapshotbinding"
	"github.com/stowage-dev/stowage/internal/snapshots"
	"github.com/stowage-dev/stowage/internal/wrap"
)

// binder makes the contents of VolumeGroupSnapshots, or takes those that people made, and copies their status.
type binder struct {
	client  client.Client
	live    client.Reader
	members *members
	classes classes
	claims  *snapshotbinding.Claims
	report  *reporter
}

// bind makes or finds the content of a VolumeGroupSnapshot, ties the two, makes the members, and says of the group what the
// content says. The members come first: a group that is ready has them all.
func (b *binder) bind(ctx context.Context, group *groupsnapshotv1.VolumeGroupSnapshot) error {
	content, err := b.contentOf(ctx, group)
	if err != nil {
		return err
	}
	if content == nil {
		content, err = b.make(ctx, group)
	} else if err = b.protect(ctx, group); err == nil {
		err = bindable(content).Tie(ctx, b.client, group, group.Spec.VolumeGroupSnapshotClassName, event.GroupSnapshotBindFailed)
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
	if err := b.report.copy(ctx, group, content); err != nil || !snapshots.IsGroupReady(group) {
		return err
	}
	return b.claims.Release(ctx, group.UID, group.Namespace, "")
}

// contentOf reads the content of a VolumeGroupSnapshot; nil if it is to be made. The content of one that was bound is never
// made again: the snapshots would have the data of another time.
func (b *binder) contentOf(ctx context.Context, group *groupsnapshotv1.VolumeGroupSnapshot) (*groupsnapshotv1.VolumeGroupSnapshotContent, error) {
	content, err := readContent(ctx, b.live, group)
	switch {
	case err != nil:
		return nil, err
	case content != nil:
		return content, check(group, content)
	case isStatic(group):
		return nil, snapshots.NewProblem(event.GroupSnapshotContentMissing, "VolumeGroupSnapshotContent %s is missing: create it", contentName(group))
	case boundContent(group) != "":
		return nil, snapshots.NewProblem(event.GroupSnapshotContentMissing,
			"VolumeGroupSnapshotContent %s is missing, and is not made again, with the data of another time: create another VolumeGroupSnapshot", contentName(group))
	}
	return nil, nil
}

// make makes the content of a VolumeGroupSnapshot. The claims are protected first, as the live read shows them: so they are
// still bound to the volumes. The content has its finalizer from the start.
func (b *binder) make(ctx context.Context, group *groupsnapshotv1.VolumeGroupSnapshot) (*groupsnapshotv1.VolumeGroupSnapshotContent, error) {
	claims, volumes, err := b.sources(ctx, group)
	if err != nil {
		return nil, err
	}
	class, err := b.classes.of(ctx, group, volumes[0].Spec.CSI.Driver)
	if err != nil {
		return nil, err
	}
	content, err := newContent(group, class, volumes)
	if err != nil {
		return nil, err
	}
	if err := b.protect(ctx, group); err != nil {
		return nil, err
	}
	var protected []types.NamespacedName
	for i := range claims {
		if err := b.claims.Protect(ctx, &claims[i]); err != nil {
			return nil, err
		}
		protected = append(protected, client.ObjectKeyFromObject(&claims[i]))
	}
	if err := b.client.Create(ctx, content); err != nil {
		return nil, fmt.Errorf("creating VolumeGroupSnapshotContent %s: %w", content.Name, err)
	}
	if err := b.claims.EndUnowned(ctx, group, bindable(content), protected...); err != nil {
		return nil, err
	}
	b.report.say(group, event.CreatingGroupSnapshot, "the driver is to make the snapshots")
	return content, nil
}

// sources reads the claims that a VolumeGroupSnapshot selects, and their volumes.
func (b *binder) sources(ctx context.Context, group *groupsnapshotv1.VolumeGroupSnapshot) ([]corev1.PersistentVolumeClaim, []*corev1.PersistentVolume, error) {
	selector, err := metav1.LabelSelectorAsSelector(group.Spec.Source.Selector)
	if err != nil {
		return nil, nil, snapshots.NewProblem(event.GroupSnapshotContentCreationFailed, "the selector is invalid: %v: create another VolumeGroupSnapshot", err)
	}
	claims := &corev1.PersistentVolumeClaimList{}
	if err := b.live.List(ctx, claims, client.InNamespace(group.Namespace), client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return nil, nil, fmt.Errorf("listing the claims of VolumeGroupSnapshot %s: %w", client.ObjectKeyFromObject(group), err)
	}
	if len(claims.Items) == 0 {
		return nil, nil, snapshots.NewProblem(event.GroupSnapshotContentCreationFailed, "no claim of the namespace has the labels %s: label one", selector)
	}
	var volumes []*corev1.PersistentVolume
	for i := range claims.Items {
		pv, err := b.claims.Volume(ctx, &claims.Items[i], event.GroupSnapshotContentCreationFailed)
		if err != nil {
			return nil, nil, err
		}
		volumes = append(volumes, pv)
	}
	return claims.Items, volumes, nil
}

// protect keeps a VolumeGroupSnapshot from going before its content.
func (b *binder) protect(ctx context.Context, group *groupsnapshotv1.VolumeGroupSnapshot) error {
	before := group.DeepCopy()
	if !controllerutil.AddFinalizer(group, snapshots.GroupBoundProtection) {
		return nil
	}
	return wrap.Error(b.client.Patch(ctx, group, patch.Fenced(before)), "protecting VolumeGroupSnapshot %s", client.ObjectKeyFromObject(group))
}
