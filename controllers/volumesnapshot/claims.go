package volumesnapshot

import (
	"context"
	"errors"
	"fmt"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/stowage-dev/stowage/internal/event"
	"github.com/stowage-dev/stowage/internal/index"
	"github.com/stowage-dev/stowage/internal/keyed"
	"github.com/stowage-dev/stowage/internal/patch"
	"github.com/stowage-dev/stowage/internal/snapshots"
	"github.com/stowage-dev/stowage/internal/wrap"
)

// claims finds the claims that VolumeSnapshots are made of, and keeps them until these are ready.
type claims struct {
	client client.Client
	live   client.Reader
	// one has one snapshot of a claim at a time look whether others need the claim, or begin to need it.
	one keyed.Locks
}

// source reads the claim that a VolumeSnapshot is made of, and its volume.
func (c *claims) source(ctx context.Context, snapshot *snapshotv1.VolumeSnapshot) (*corev1.PersistentVolumeClaim, *corev1.PersistentVolume, error) {
	claim, pv := &corev1.PersistentVolumeClaim{}, &corev1.PersistentVolume{}
	name := snapshots.SourceClaim(snapshot)
	err := c.live.Get(ctx, client.ObjectKey{Namespace: snapshot.Namespace, Name: name}, claim)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil, newProblem(event.SnapshotContentCreationFailed, "claim %s does not exist: create it", name)
	case err != nil:
		return nil, nil, fmt.Errorf("reading claim %s/%s: %w", snapshot.Namespace, name, err)
	case !claim.DeletionTimestamp.IsZero() && !controllerutil.ContainsFinalizer(claim, snapshots.ClaimProtection):
		return nil, nil, newProblem(event.SnapshotContentCreationFailed, "claim %s is being deleted: no snapshot of it is begun", name)
	case claim.Status.Phase != corev1.ClaimBound || claim.Spec.VolumeName == "":
		return nil, nil, newProblem(event.SnapshotContentCreationFailed, "claim %s is not bound yet: the snapshot is made once it is", name)
	}
	err = c.live.Get(ctx, client.ObjectKey{Name: claim.Spec.VolumeName}, pv)
	switch {
	case client.IgnoreNotFound(err) != nil:
		return nil, nil, fmt.Errorf("reading volume %s: %w", claim.Spec.VolumeName, err)
	case err != nil || !isBoundTo(pv, claim):
		return nil, nil, newProblem(event.SnapshotContentCreationFailed, "claim %s is bound to volume %s, which is gone, or another claim's", name, claim.Spec.VolumeName)
	case pv.Spec.CSI == nil:
		return nil, nil, newProblem(event.SnapshotContentCreationFailed, "volume %s of claim %s is not of a CSI driver: it can have no snapshots", pv.Name, name)
	}
	return claim, pv, nil
}

// isBoundTo reports whether a volume is the claim's.
func isBoundTo(pv *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) bool {
	ref := pv.Spec.ClaimRef
	return ref != nil && ref.Namespace == claim.Namespace && ref.Name == claim.Name && (ref.UID == "" || ref.UID == claim.UID)
}

// protect keeps a claim, as it was read, until release.
func (c *claims) protect(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	key := client.ObjectKeyFromObject(claim)
	done, err := c.one.Acquire(ctx, key.String())
	if err != nil {
		return err
	}
	defer done()
	before := claim.DeepCopy()
	if controllerutil.AddFinalizer(claim, snapshots.ClaimProtection) {
		return wrap.Error(c.client.Patch(ctx, claim, patch.Fenced(before)), "protecting claim %s", key)
	}
	// Another snapshot protects it, which may have become ready since the read.
	if err := c.live.Get(ctx, key, claim); err != nil {
		return fmt.Errorf("reading claim %s: %w", key, err)
	}
	if claim.UID != before.UID || !controllerutil.ContainsFinalizer(claim, snapshots.ClaimProtection) {
		return apierrors.NewConflict(corev1.Resource("persistentvolumeclaims"), claim.Name, errUnprotected)
	}
	return nil
}

// errUnprotected is that of a claim that another snapshot let go just then.
var errUnprotected = errors.New("nothing protects it any more")

// isKept reports, from the cache, whether the claim of a VolumeSnapshot is kept, and no other needs it.
func (c *claims) isKept(ctx context.Context, snapshot *snapshotv1.VolumeSnapshot) (bool, error) {
	key := client.ObjectKey{Namespace: snapshot.Namespace, Name: snapshots.SourceClaim(snapshot)}
	if key.Name == "" {
		return false, nil
	}
	claim := &corev1.PersistentVolumeClaim{}
	if err := c.client.Get(ctx, key, claim); err != nil || !controllerutil.ContainsFinalizer(claim, snapshots.ClaimProtection) {
		return false, wrap.Error(client.IgnoreNotFound(err), "reading claim %s", key)
	}
	used, err := isUsed(ctx, c.client, snapshot, client.MatchingFields{index.SnapshotsByClaim: key.Name})
	return !used, err
}

// release lets the claim of a VolumeSnapshot go that is ready, or is deleted, unless others are being made of it. The cache
// only saves live reads.
func (c *claims) release(ctx context.Context, snapshot *snapshotv1.VolumeSnapshot) error {
	if !snapshots.IsReady(snapshot) && snapshot.DeletionTimestamp.IsZero() {
		return nil
	}
	if kept, err := c.isKept(ctx, snapshot); !kept || err != nil {
		return err
	}
	key := client.ObjectKey{Namespace: snapshot.Namespace, Name: snapshots.SourceClaim(snapshot)}
	done, err := c.one.Acquire(ctx, key.String())
	if err != nil {
		return err
	}
	defer done()
	claim := &corev1.PersistentVolumeClaim{}
	if err := c.live.Get(ctx, key, claim); err != nil {
		return wrap.Error(client.IgnoreNotFound(err), "reading claim %s", key)
	}
	if used, err := isUsed(ctx, c.live, snapshot); used || err != nil {
		return err
	}
	before := claim.DeepCopy()
	if !controllerutil.RemoveFinalizer(claim, snapshots.ClaimProtection) {
		return nil
	}
	return wrap.Error(client.IgnoreNotFound(c.client.Patch(ctx, claim, patch.Fenced(before))), "letting claim %s go", key)
}

// isUsed reports whether another VolumeSnapshot is being made of the same claim.
func isUsed(ctx context.Context, from client.Reader, but *snapshotv1.VolumeSnapshot, options ...client.ListOption) (bool, error) {
	others := &snapshotv1.VolumeSnapshotList{}
	if err := from.List(ctx, others, append(options, client.InNamespace(but.Namespace))...); err != nil {
		return false, fmt.Errorf("listing the VolumeSnapshots of namespace %s: %w", but.Namespace, err)
	}
	for i := range others.Items {
		other := &others.Items[i]
		if other.UID != but.UID && snapshots.SourceClaim(other) == snapshots.SourceClaim(but) && !snapshots.IsReady(other) {
			return true, nil
		}
	}
	return false, nil
}
