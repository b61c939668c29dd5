package volumegroupsnapshotcontent

import (
	"context"
	"fmt"

	groupsnapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumegroupsnapshot/v1"
	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/patch"
	"github.com/stowage-dev/stowage/internal/wrap"
)

// releaser deletes group snapshots, and lets contents go.
type releaser struct {
	client  client.Client
	live    client.Reader
	targets targets
	report  *reporter
}

// release deletes the group snapshot of a deleted content, if its policy says so, and lets the content go. The policy
// and the handle are those of a live read in the same pass. A driver keeps no owner beside a group snapshot, so there is
// nothing to note of one that stays.
func (r *releaser) release(ctx context.Context, content *groupsnapshotv1.VolumeGroupSnapshotContent) (ctrl.Result, error) {
	if handle := recorded(content); handle != "" && content.Spec.DeletionPolicy == snapshotv1.VolumeSnapshotContentDelete {
		if err := r.remove(ctx, content, handle); err != nil {
			return r.report.Unreleased(servable(content), err)
		}
	}
	return ctrl.Result{}, servable(content).Unprotect(ctx, r.client)
}

// remove deletes a group snapshot, unless another content has it. The handle goes from the status before the finalizer
// does: after a crash in between nothing is deleted twice.
func (r *releaser) remove(ctx context.Context, content *groupsnapshotv1.VolumeGroupSnapshotContent, handle string) error {
	kept, err := r.isKept(ctx, content, handle)
	if err == nil && !kept {
		err = r.delete(ctx, content, handle)
	}
	if err != nil {
		return err
	}
	return r.clear(ctx, content)
}

// isKept reports, from a live list, whether another content has the same group snapshot.
func (r *releaser) isKept(ctx context.Context, content *groupsnapshotv1.VolumeGroupSnapshotContent, handle string) (bool, error) {
	others := &groupsnapshotv1.VolumeGroupSnapshotContentList{}
	if err := r.live.List(ctx, others); err != nil {
		return false, fmt.Errorf("listing the VolumeGroupSnapshotContents: %w", err)
	}
	for i := range others.Items {
		if other := &others.Items[i]; other.UID != content.UID && keeps(other, content.Spec.Driver, handle) {
			r.report.Kept(servable(content), other.Name)
			return true, nil
		}
	}
	return false, nil
}

// checkMembers returns an error while a content of another namespace has a snapshot of one of its members: that would go,
// too.
func (r *releaser) checkMembers(ctx context.Context, content *groupsnapshotv1.VolumeGroupSnapshotContent, handle string) error {
	single := &snapshotv1.VolumeSnapshotContentList{}
	if err := r.live.List(ctx, single); err != nil {
		return fmt.Errorf("listing the VolumeSnapshotContents: %w", err)
	}
	all := members(content)
	for i := range single.Items {
		if keepsMember(&single.Items[i], content, handle, all) {
			return backend.InProgress.Errorf("VolumeSnapshotContent %s of another namespace has a snapshot of the group: delete it, and its VolumeSnapshot, first", single.Items[i].Name)
		}
	}
	return nil
}

func (r *releaser) delete(ctx context.Context, content *groupsnapshotv1.VolumeGroupSnapshotContent, handle string) error {
	if err := r.checkMembers(ctx, content, handle); err != nil {
		return err
	}
	of, err := r.targets.open(ctx, content)
	if err != nil {
		return err
	}
	if err := of.DeleteGroupSnapshot(ctx, handle, members(content)); err != nil {
		return err
	}
	r.report.Deleted(servable(content))
	return nil
}

// clear removes what the status says of a group snapshot that is gone.
func (r *releaser) clear(ctx context.Context, content *groupsnapshotv1.VolumeGroupSnapshotContent) error {
	before := content.DeepCopy()
	content.Status.VolumeGroupSnapshotHandle, content.Status.ReadyToUse = nil, nil
	content.Status.CreationTime, content.Status.Error = nil, nil
	return wrap.Error(r.client.Status().Patch(ctx, content, patch.Fenced(before)), "clearing the status of VolumeGroupSnapshotContent %s", content.Name)
}
