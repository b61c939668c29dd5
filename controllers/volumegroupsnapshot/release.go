package volumegroupsnapshot

import (
	"context"

	groupsnapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumegroupsnapshot/v1"
	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/stowage-dev/stowage/internal/patch"
	"github.com/stowage-dev/stowage/internal/snapshotbinding"
	"github.com/stowage-dev/stowage/internal/snapshots"
	"github.com/stowage-dev/stowage/internal/wake"
	"github.com/stowage-dev/stowage/internal/wrap"
)

// releaser lets deleted VolumeGroupSnapshots go.
type releaser struct {
	client  client.Client
	live    client.Reader
	members *members
	claims  *snapshotbinding.Claims
	report  *reporter
}

// release lets a deleted VolumeGroupSnapshot go once no claim is restored from a member and, with policy Delete, once its
// content is gone. The members are deleted first: from then on, no restore of one begins. They stay until the group may go.
func (r *releaser) release(ctx context.Context, group *groupsnapshotv1.VolumeGroupSnapshot) (ctrl.Result, error) {
	if !controllerutil.ContainsFinalizer(group, snapshots.GroupBoundProtection) {
		return ctrl.Result{}, nil
	}
	of, err := r.members.delete(ctx, group)
	if err != nil {
		return ctrl.Result{}, err
	}
	content, err := readContent(ctx, r.live, group)
	if err != nil {
		return ctrl.Result{}, err
	}
	if content != nil && content.Spec.VolumeGroupSnapshotRef.UID == group.UID {
		claim, err := r.claims.Restoring(ctx, group.Namespace, of...)
		if err != nil {
			return ctrl.Result{}, err
		}
		if claim != "" {
			r.report.pending(group, claim)
			return ctrl.Result{RequeueAfter: wake.WithoutAnswer}, nil
		}
		if err := bindable(content).End(ctx, r.client); err != nil {
			return ctrl.Result{}, err
		}
		if content.Spec.DeletionPolicy == snapshotv1.VolumeSnapshotContentDelete {
			// Its end wakes the VolumeGroupSnapshot.
			return ctrl.Result{}, nil
		}
	}
	for _, member := range of {
		if err := r.members.free(ctx, member); err != nil {
			return ctrl.Result{}, err
		}
	}
	if err := r.claims.Release(ctx, group.UID, group.Namespace, ""); err != nil {
		return ctrl.Result{}, err
	}
	before := group.DeepCopy()
	controllerutil.RemoveFinalizer(group, snapshots.GroupBoundProtection)
	err = r.client.Patch(ctx, group, patch.Fenced(before))
	return ctrl.Result{}, wrap.Error(client.IgnoreNotFound(err), "letting VolumeGroupSnapshot %s go", client.ObjectKeyFromObject(group))
}
