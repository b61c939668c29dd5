package volumesnapshot

import (
	"context"

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

// releaser lets deleted VolumeSnapshots go.
type releaser struct {
	client client.Client
	live   client.Reader
	claims *snapshotbinding.Claims
	report *reporter
}

// release lets a deleted VolumeSnapshot go once no claim is restored from it and, with policy Delete, once its content is
// gone. Policy and content are those of a live read.
func (r *releaser) release(ctx context.Context, snapshot *snapshotv1.VolumeSnapshot) (ctrl.Result, error) {
	if !isProtected(snapshot) {
		return ctrl.Result{}, nil
	}
	if controllerutil.ContainsFinalizer(snapshot, snapshots.GroupMemberProtection) {
		// The reconciler of groups removes it once the group may go.
		r.report.pending(snapshot, "its group is there: delete the VolumeGroupSnapshot")
		return ctrl.Result{}, nil
	}
	content, err := readContent(ctx, r.live, snapshot)
	if err != nil {
		return ctrl.Result{}, err
	}
	if content != nil && snapshots.IsOf(content, snapshot) {
		claim, err := r.claims.Restoring(ctx, snapshot.Namespace, snapshot)
		if err != nil {
			return ctrl.Result{}, err
		}
		if claim != "" {
			r.report.pending(snapshot, "claim "+claim+" is restored from it")
			return ctrl.Result{RequeueAfter: wake.WithoutAnswer}, nil
		}
		if err := bindable(content).End(ctx, r.client); err != nil {
			return ctrl.Result{}, err
		}
		if content.Spec.DeletionPolicy == snapshotv1.VolumeSnapshotContentDelete {
			// Its end wakes the VolumeSnapshot.
			return ctrl.Result{}, nil
		}
	}
	if err := release(ctx, r.claims, snapshot); err != nil {
		return ctrl.Result{}, err
	}
	before := snapshot.DeepCopy()
	for _, finalizer := range protections {
		controllerutil.RemoveFinalizer(snapshot, finalizer)
	}
	err = r.client.Patch(ctx, snapshot, patch.Fenced(before))
	return ctrl.Result{}, wrap.Error(client.IgnoreNotFound(err), "letting VolumeSnapshot %s go", client.ObjectKeyFromObject(snapshot))
}
