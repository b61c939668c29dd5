package volumegroupsnapshot

import (
	"context"
	"fmt"

	groupsnapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumegroupsnapshot/v1"
	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/stowage-dev/stowage/internal/patch"
	"github.com/stowage-dev/stowage/internal/snapshots"
	"github.com/stowage-dev/stowage/internal/wrap"
)

// members makes the VolumeSnapshots and contents of what a group's content lists, and lets them go with the group.
type members struct {
	client client.Client
	live   client.Reader
}

// list reads the VolumeSnapshots of a namespace for which keep is true.
func list(ctx context.Context, from client.Reader, namespace string, keep func(*snapshotv1.VolumeSnapshot) bool, options ...client.ListOption) ([]*snapshotv1.VolumeSnapshot, error) {
	all := &snapshotv1.VolumeSnapshotList{}
	if err := from.List(ctx, all, append(options, client.InNamespace(namespace))...); err != nil {
		return nil, fmt.Errorf("listing the VolumeSnapshots of namespace %s: %w", namespace, err)
	}
	var kept []*snapshotv1.VolumeSnapshot
	for i := range all.Items {
		if keep(&all.Items[i]) {
			kept = append(kept, &all.Items[i])
		}
	}
	return kept, nil
}

// adopt makes members of the VolumeSnapshots that a person made for the snapshots of a group: they go with it.
func (m *members) adopt(ctx context.Context, group *groupsnapshotv1.VolumeGroupSnapshot, content *groupsnapshotv1.VolumeGroupSnapshotContent) error {
	found, err := m.unadopted(ctx, group, content)
	if err != nil {
		return err
	}
	for _, snapshot := range found {
		before := snapshot.DeepCopy()
		controllerutil.AddFinalizer(snapshot, snapshots.GroupMemberProtection)
		if snapshots.Group(snapshot) == nil {
			snapshot.OwnerReferences = append(snapshot.OwnerReferences, snapshots.OwnedBy(group))
		}
		if err := m.client.Patch(ctx, snapshot, patch.Fenced(before)); err != nil {
			return fmt.Errorf("making VolumeSnapshot %s a member of its group: %w", client.ObjectKeyFromObject(snapshot), err)
		}
		if err := m.bind(ctx, snapshot, group.Name, snapshots.BoundContent(snapshot)); err != nil {
			return err
		}
	}
	return nil
}

// unadopted returns, from the cache, the VolumeSnapshots that are to be members of a group with a content of a person. They are
// bound, and their contents have the group's handle and driver.
func (m *members) unadopted(ctx context.Context, group *groupsnapshotv1.VolumeGroupSnapshot, of *groupsnapshotv1.VolumeGroupSnapshotContent) ([]*snapshotv1.VolumeSnapshot, error) {
	if !isStatic(group) || of.Status == nil || of.Status.VolumeGroupSnapshotHandle == nil {
		return nil, nil
	}
	return list(ctx, m.client, group.Namespace, func(snapshot *snapshotv1.VolumeSnapshot) bool {
		if !isAdoptable(snapshot) {
			return false
		}
		content := &snapshotv1.VolumeSnapshotContent{}
		err := m.client.Get(ctx, client.ObjectKey{Name: snapshots.BoundContent(snapshot)}, content)
		return err == nil && snapshots.IsOf(content, snapshot) && isMemberOf(content, of)
	})
}

// isAdoptable reports whether a VolumeSnapshot is bound to the content of a person, and isn't a member yet.
func isAdoptable(snapshot *snapshotv1.VolumeSnapshot) bool {
	return snapshot.Spec.Source.VolumeSnapshotContentName != nil && snapshots.BoundContent(snapshot) != "" && snapshot.DeletionTimestamp.IsZero() &&
		(!controllerutil.ContainsFinalizer(snapshot, snapshots.GroupMemberProtection) || snapshot.Status.VolumeGroupSnapshotName == nil)
}

// isMemberOf reports whether the snapshot of a content is of the group of another.
func isMemberOf(content *snapshotv1.VolumeSnapshotContent, of *groupsnapshotv1.VolumeGroupSnapshotContent) bool {
	return content.Spec.Driver == of.Spec.Driver && content.Status != nil && content.Status.VolumeGroupSnapshotHandle != nil && of.Status != nil &&
		*content.Status.VolumeGroupSnapshotHandle == ptr.Deref(of.Status.VolumeGroupSnapshotHandle, "")
}

// bind records on a member which content it has, and of which group it is.
func (m *members) bind(ctx context.Context, snapshot *snapshotv1.VolumeSnapshot, group, content string) error {
	before := snapshot.DeepCopy()
	if snapshot.Status == nil {
		snapshot.Status = &snapshotv1.VolumeSnapshotStatus{}
	}
	if snapshots.BoundContent(snapshot) == content && ptr.Deref(snapshot.Status.VolumeGroupSnapshotName, "") == group {
		return nil
	}
	snapshot.Status.BoundVolumeSnapshotContentName, snapshot.Status.VolumeGroupSnapshotName = &content, &group
	return wrap.Error(m.client.Status().Patch(ctx, snapshot, patch.Fenced(before)), "binding VolumeSnapshot %s", client.ObjectKeyFromObject(snapshot))
}

// delete deletes the members of a group, which stay until they are free, and returns them.
func (m *members) delete(ctx context.Context, group *groupsnapshotv1.VolumeGroupSnapshot) ([]*snapshotv1.VolumeSnapshot, error) {
	found, err := list(ctx, m.live, group.Namespace, func(snapshot *snapshotv1.VolumeSnapshot) bool {
		owner := snapshots.Group(snapshot)
		return owner != nil && owner.UID == group.UID
	})
	if err != nil {
		return nil, err
	}
	for _, member := range found {
		if !member.DeletionTimestamp.IsZero() {
			continue
		}
		err := m.client.Delete(ctx, member, client.Preconditions{UID: &member.UID})
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("deleting VolumeSnapshot %s: %w", client.ObjectKeyFromObject(member), err)
		}
	}
	return found, nil
}

// free lets a member go.
func (m *members) free(ctx context.Context, member *snapshotv1.VolumeSnapshot) error {
	before := member.DeepCopy()
	if !controllerutil.RemoveFinalizer(member, snapshots.GroupMemberProtection) {
		return nil
	}
	err := m.client.Patch(ctx, member, patch.Fenced(before))
	return wrap.Error(client.IgnoreNotFound(err), "letting VolumeSnapshot %s go", client.ObjectKeyFromObject(member))
}

// freeLost lets deleted members of a group go that isn't there any more, though another may have its name.
func (m *members) freeLost(ctx context.Context, name types.NamespacedName) error {
	found, err := list(ctx, m.client, name.Namespace, func(snapshot *snapshotv1.VolumeSnapshot) bool {
		owner := snapshots.Group(snapshot)
		return owner != nil && owner.Name == name.Name && isWaiting(snapshot)
	})
	if len(found) == 0 || err != nil {
		return err
	}
	group := &groupsnapshotv1.VolumeGroupSnapshot{}
	if err := m.live.Get(ctx, name, group); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading VolumeGroupSnapshot %s: %w", name, err)
	}
	for _, member := range found {
		if snapshots.Group(member).UID == group.UID {
			continue
		}
		if err := m.free(ctx, member); err != nil {
			return err
		}
	}
	return nil
}

// isWaiting reports whether a deleted VolumeSnapshot waits for its group.
func isWaiting(snapshot *snapshotv1.VolumeSnapshot) bool {
	return !snapshot.DeletionTimestamp.IsZero() && controllerutil.ContainsFinalizer(snapshot, snapshots.GroupMemberProtection)
}
