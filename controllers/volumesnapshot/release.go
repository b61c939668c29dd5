package volumesnapshot

import (
	"context"
	"fmt"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/stowage-dev/stowage/internal/index"
	"github.com/stowage-dev/stowage/internal/patch"
	"github.com/stowage-dev/stowage/internal/provisioned"
	"github.com/stowage-dev/stowage/internal/snapshots"
	"github.com/stowage-dev/stowage/internal/wake"
	"github.com/stowage-dev/stowage/internal/wrap"
)

// releaser lets deleted VolumeSnapshots go.
type releaser struct {
	client client.Client
	live   client.Reader
	claims *claims
	report *reporter
}

// release lets a deleted VolumeSnapshot go once no claim is restored from it and, with policy Delete, once its content is
// gone. Policy and content are those of a live read.
func (r *releaser) release(ctx context.Context, snapshot *snapshotv1.VolumeSnapshot) (ctrl.Result, error) {
	if !isProtected(snapshot) {
		return ctrl.Result{}, nil
	}
	content, err := readContent(ctx, r.live, snapshot)
	if err != nil {
		return ctrl.Result{}, err
	}
	if content != nil && snapshots.IsOf(content, snapshot) {
		claim, err := r.restoring(ctx, snapshot)
		if err != nil {
			return ctrl.Result{}, err
		}
		if claim != "" {
			r.report.pending(snapshot, claim)
			return ctrl.Result{RequeueAfter: wake.WithoutAnswer}, nil
		}
		if err := r.end(ctx, content); err != nil {
			return ctrl.Result{}, err
		}
		if content.Spec.DeletionPolicy == snapshotv1.VolumeSnapshotContentDelete {
			// Its end wakes the VolumeSnapshot.
			return ctrl.Result{}, nil
		}
	}
	if err := r.claims.release(ctx, snapshot); err != nil {
		return ctrl.Result{}, err
	}
	before := snapshot.DeepCopy()
	for _, finalizer := range finalizers(snapshotv1.VolumeSnapshotContentDelete) {
		controllerutil.RemoveFinalizer(snapshot, finalizer)
	}
	err = r.client.Patch(ctx, snapshot, patch.Fenced(before))
	return ctrl.Result{}, wrap.Error(client.IgnoreNotFound(err), "letting VolumeSnapshot %s go", client.ObjectKeyFromObject(snapshot))
}

// restoring returns the name of a claim that is being restored from a VolumeSnapshot; "" for none. The cache only saves
// live reads.
func (r *releaser) restoring(ctx context.Context, snapshot *snapshotv1.VolumeSnapshot) (string, error) {
	fromSnapshot := client.MatchingFields{index.ClaimsBySource: index.SourceKey(provisioned.SnapshotKind, client.ObjectKeyFromObject(snapshot))}
	if name, err := restoringIn(ctx, r.client, snapshot, fromSnapshot); name != "" || err != nil {
		return name, err
	}
	return restoringIn(ctx, r.live, snapshot, client.InNamespace(snapshot.Namespace))
}

func restoringIn(ctx context.Context, from client.Reader, snapshot *snapshotv1.VolumeSnapshot, options ...client.ListOption) (string, error) {
	claims := &corev1.PersistentVolumeClaimList{}
	if err := from.List(ctx, claims, options...); err != nil {
		return "", fmt.Errorf("listing the claims that are restored from VolumeSnapshot %s: %w", client.ObjectKeyFromObject(snapshot), err)
	}
	for i := range claims.Items {
		claim := &claims.Items[i]
		_, source, found := provisioned.SourceKey(claim)
		if found && provisioned.IsSnapshot(provisioned.DataSource(claim)) && source == client.ObjectKeyFromObject(snapshot) && mayKeep(claim) && claim.Status.Phase == corev1.ClaimPending {
			return provisioned.NameFor(snapshot.Namespace, claim), nil
		}
	}
	return "", nil
}

// mayKeep reports whether a claim keeps the VolumeSnapshot that it names. One of another namespace has to have begun: each
// tenant can name a VolumeSnapshot of another.
func mayKeep(claim *corev1.PersistentVolumeClaim) bool {
	return provisioned.Elsewhere(claim) == "" || provisioned.HasIntent(claim) && provisioned.RestoreOf(claim).Snapshot != ""
}

// end says on a content that its VolumeSnapshot is deleted and, with policy Delete, deletes it. The deletion is fenced: of a
// content whose policy changes just then, nothing is deleted.
func (r *releaser) end(ctx context.Context, content *snapshotv1.VolumeSnapshotContent) error {
	if !metav1.HasAnnotation(content.ObjectMeta, snapshots.BeingDeleted) {
		before := content.DeepCopy()
		metav1.SetMetaDataAnnotation(&content.ObjectMeta, snapshots.BeingDeleted, "yes")
		if err := r.client.Patch(ctx, content, patch.Fenced(before)); err != nil {
			return wrap.Error(client.IgnoreNotFound(err), "saying that the VolumeSnapshot of VolumeSnapshotContent %s is deleted", content.Name)
		}
	}
	if content.Spec.DeletionPolicy != snapshotv1.VolumeSnapshotContentDelete || !content.DeletionTimestamp.IsZero() {
		return nil
	}
	err := r.client.Delete(ctx, content, client.Preconditions{UID: &content.UID, ResourceVersion: &content.ResourceVersion})
	return wrap.Error(client.IgnoreNotFound(err), "deleting VolumeSnapshotContent %s", content.Name)
}
