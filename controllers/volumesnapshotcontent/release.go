package volumesnapshotcontent

import (
	"context"
	"fmt"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/stowage-dev/stowage/internal/patch"
	"github.com/stowage-dev/stowage/internal/wrap"
)

// releaser deletes snapshots, and lets contents go.
type releaser struct {
	client  client.Client
	live    client.Reader
	targets targets
	report  *reporter
}

// release deletes the snapshot of a deleted content, if its policy says so, and lets the content go.
// The policy and the handle are those of a live read in the same pass. The handle goes from the status
// before the finalizer does: after a crash in between nothing is deleted twice.
func (r *releaser) release(ctx context.Context, content *snapshotv1.VolumeSnapshotContent) (ctrl.Result, error) {
	if handle := recorded(content); handle != "" && content.Spec.DeletionPolicy == snapshotv1.VolumeSnapshotContentDelete {
		kept, err := r.isKept(ctx, content, handle)
		if err != nil {
			return ctrl.Result{}, err
		}
		if !kept {
			err = r.delete(ctx, content, handle)
		}
		if err != nil {
			return r.report.undeleted(content, err)
		}
		if err := r.clear(ctx, content); err != nil {
			return ctrl.Result{}, err
		}
	}
	before := content.DeepCopy()
	if !controllerutil.RemoveFinalizer(content, Finalizer) {
		return ctrl.Result{}, nil
	}
	err := r.client.Patch(ctx, content, patch.Fenced(before))
	return ctrl.Result{}, wrap.Error(client.IgnoreNotFound(err), "removing the finalizer of VolumeSnapshotContent %s", content.Name)
}

// isKept reports, from a live list, whether another content has the same snapshot.
func (r *releaser) isKept(ctx context.Context, content *snapshotv1.VolumeSnapshotContent, handle string) (bool, error) {
	others := &snapshotv1.VolumeSnapshotContentList{}
	if err := r.live.List(ctx, others); err != nil {
		return false, fmt.Errorf("listing the VolumeSnapshotContents: %w", err)
	}
	for i := range others.Items {
		if other := &others.Items[i]; other.UID != content.UID && keeps(other, content.Spec.Driver, handle) {
			r.report.kept(content, other)
			return true, nil
		}
	}
	return false, nil
}

func (r *releaser) delete(ctx context.Context, content *snapshotv1.VolumeSnapshotContent, handle string) error {
	of, err := r.targets.find(ctx, content)
	if err != nil {
		return err
	}
	if err := of.DeleteSnapshot(ctx, handle); err != nil {
		return err
	}
	r.report.deleted(content)
	return nil
}

// clear removes what the status says of a snapshot that is gone.
func (r *releaser) clear(ctx context.Context, content *snapshotv1.VolumeSnapshotContent) error {
	before := content.DeepCopy()
	content.Status.SnapshotHandle, content.Status.ReadyToUse = nil, nil
	content.Status.CreationTime, content.Status.RestoreSize = nil, nil
	return wrap.Error(r.client.Status().Patch(ctx, content, patch.Fenced(before)), "clearing the status of VolumeSnapshotContent %s", content.Name)
}
