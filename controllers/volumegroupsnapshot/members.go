package volumegroupsnapshot

import (
	"context"
	"fmt"

	groupsnapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumegroupsnapshot/v1"
	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/internal/index"
	"github.com/stowage-dev/stowage/internal/patch"
	"github.com/stowage-dev/stowage/internal/snapshots"
	"github.com/stowage-dev/stowage/internal/volume"
	"github.com/stowage-dev/stowage/internal/wrap"
)

// ensure makes the members that a content lists, once it has the handle of the group.
func (m *members) ensure(ctx context.Context, group *groupsnapshotv1.VolumeGroupSnapshot, content *groupsnapshotv1.VolumeGroupSnapshotContent) error {
	if bindable(group).IsComplete() || content.Status == nil || content.Status.VolumeGroupSnapshotHandle == nil {
		return nil
	}
	for _, info := range content.Status.VolumeSnapshotInfoList {
		if err := m.ensureOne(ctx, group, content, info); err != nil {
			return err
		}
	}
	return nil
}

// ensureOne makes a VolumeSnapshot and its content, and binds them. The content names the VolumeSnapshot by its UID from the start.
func (m *members) ensureOne(ctx context.Context, group *groupsnapshotv1.VolumeGroupSnapshot, of *groupsnapshotv1.VolumeGroupSnapshotContent, info groupsnapshotv1.VolumeSnapshotInfo) error {
	snapshot, content, err := m.newMember(ctx, group, of, info)
	if err != nil {
		return err
	}
	if m.isMade(ctx, client.ObjectKeyFromObject(snapshot), content.Name) {
		return nil
	}
	if err := readOrCreate(ctx, m, snapshot); err != nil {
		return err
	}
	if owner := snapshots.Group(snapshot); owner == nil || owner.UID != group.UID {
		return snapshots.NewProblem(kind.Reasons.BindFailed, "VolumeSnapshot %s is not of the group, and has the name of its member: delete it", snapshot.Name)
	}
	content.Spec.VolumeSnapshotRef.UID = snapshot.UID
	if err := readOrCreate(ctx, m, content); err != nil {
		return err
	}
	before := content.DeepCopy()
	had := ptr.Deref(content.Status, snapshotv1.VolumeSnapshotContentStatus{})
	switch {
	case content.Spec.VolumeSnapshotRef.UID == "" && snapshots.IsFor(content, snapshot):
		// snapshot-controller began it.
		content.Spec.VolumeSnapshotRef.UID = snapshot.UID
		if err := m.client.Patch(ctx, content, patch.Fenced(before)); err != nil {
			return fmt.Errorf("binding VolumeSnapshotContent %s: %w", content.Name, err)
		}
		before = content.DeepCopy()
	case !snapshots.IsOf(content, snapshot) || ptr.Deref(had.SnapshotHandle, info.SnapshotHandle) != info.SnapshotHandle:
		return snapshots.NewProblem(kind.Reasons.BindFailed, "VolumeSnapshotContent %s is not of the group, and has the name of its member: delete it", content.Name)
	}
	if had.SnapshotHandle == nil {
		content.Status = &snapshotv1.VolumeSnapshotContentStatus{
			SnapshotHandle: &info.SnapshotHandle, VolumeGroupSnapshotHandle: of.Status.VolumeGroupSnapshotHandle,
			CreationTime: info.CreationTime, RestoreSize: info.RestoreSize, ReadyToUse: info.ReadyToUse,
		}
		if err := m.client.Status().Patch(ctx, content, patch.Fenced(before)); err != nil {
			return fmt.Errorf("recording the snapshot of VolumeSnapshotContent %s: %w", content.Name, err)
		}
	}
	return m.bind(ctx, snapshot, group.Name, content.Name)
}

// isMade reports, from the cache, whether all of a member is there.
func (m *members) isMade(ctx context.Context, name client.ObjectKey, contentName string) bool {
	snapshot, content := &snapshotv1.VolumeSnapshot{}, &snapshotv1.VolumeSnapshotContent{}
	return m.client.Get(ctx, name, snapshot) == nil && snapshots.BoundContent(snapshot) == contentName && snapshot.Status.VolumeGroupSnapshotName != nil &&
		m.client.Get(ctx, client.ObjectKey{Name: contentName}, content) == nil && snapshots.IsOf(content, snapshot) &&
		content.Status != nil && content.Status.SnapshotHandle != nil
}

// readOrCreate reads the object of a name, or creates it.
func readOrCreate[T any, P interface {
	*T
	client.Object
}](ctx context.Context, m *members, object P) error {
	key, found := client.ObjectKeyFromObject(object), new(T)
	err := m.live.Get(ctx, key, P(found))
	if apierrors.IsNotFound(err) {
		return wrap.Error(m.client.Create(ctx, object), "creating %T %s", object, key)
	}
	*object = *found
	return wrap.Error(err, "reading %T %s", object, key)
}

// newMember is what is made for a member. The claim and the mode are those of the volume, while it is there.
func (m *members) newMember(ctx context.Context, group *groupsnapshotv1.VolumeGroupSnapshot, of *groupsnapshotv1.VolumeGroupSnapshotContent, info groupsnapshotv1.VolumeSnapshotInfo) (*snapshotv1.VolumeSnapshot, *snapshotv1.VolumeSnapshotContent, error) {
	volumes, err := index.VolumesOf(ctx, m.client, volume.Key(of.Spec.Driver, info.VolumeHandle))
	if err != nil {
		return nil, nil, err
	}
	claim, mode := "", (*corev1.PersistentVolumeMode)(nil)
	if len(volumes) == 1 {
		mode = volumes[0].Spec.VolumeMode
		if ref := volumes[0].Spec.ClaimRef; ref != nil && ref.Namespace == group.Namespace {
			claim = ref.Name
		}
	}
	name, contentName := snapshots.MemberNames(group.UID, info.VolumeHandle)
	snapshot := &snapshotv1.VolumeSnapshot{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: group.Namespace, Name: name, OwnerReferences: []metav1.OwnerReference{snapshots.OwnedBy(group)},
			Finalizers: []string{snapshots.GroupMemberProtection, snapshots.SourceProtection},
		},
		Spec: snapshotv1.VolumeSnapshotSpec{Source: snapshotv1.VolumeSnapshotSource{PersistentVolumeClaimName: &claim}},
	}
	content := &snapshotv1.VolumeSnapshotContent{
		ObjectMeta: metav1.ObjectMeta{
			Name: contentName, Finalizers: []string{snapshots.ContentProtection},
			Annotations: map[string]string{snapshots.GroupMember: *of.Status.VolumeGroupSnapshotHandle},
		},
		Spec: snapshotv1.VolumeSnapshotContentSpec{
			VolumeSnapshotRef: corev1.ObjectReference{Kind: "VolumeSnapshot", Namespace: group.Namespace, Name: name},
			Source:            snapshotv1.VolumeSnapshotContentSource{VolumeHandle: &info.VolumeHandle},
			DeletionPolicy:    of.Spec.DeletionPolicy, Driver: of.Spec.Driver, SourceVolumeMode: mode,
		},
	}
	for from, to := range map[string]string{
		snapshots.GroupDeletionSecretName: snapshots.DeletionSecretName, snapshots.GroupDeletionSecretNamespace: snapshots.DeletionSecretNamespace,
	} {
		if value, has := of.Annotations[from]; has {
			content.Annotations[to] = value
		}
	}
	return snapshot, content, nil
}
