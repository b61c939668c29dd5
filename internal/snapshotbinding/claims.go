// Package snapshotbinding has what binds VolumeSnapshots and VolumeGroupSnapshots alike to their contents. It finds the claims that
// snapshots are made of, and keeps them until those are ready: both reconcilers may need the same claim.
package snapshotbinding

import (
	"context"
	"errors"
	"fmt"

	groupsnapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumegroupsnapshot/v1"
	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/stowage-dev/stowage/internal/index"
	"github.com/stowage-dev/stowage/internal/keyed"
	"github.com/stowage-dev/stowage/internal/patch"
	"github.com/stowage-dev/stowage/internal/snapshots"
	"github.com/stowage-dev/stowage/internal/wrap"
)

// Claims keeps claims while snapshots are made of them.
type Claims struct {
	client client.Client
	live   client.Reader
	// one has one snapshot of a claim at a time look whether others need the claim, or begin to need it.
	one keyed.Locks
}

// New makes it, for all reconcilers that keep claims.
func New(client client.Client, live client.Reader) *Claims {
	return &Claims{client: client, live: live}
}

// Volume reads the volume of a claim, as a live read shows that. A problem has this reason.
func (c *Claims) Volume(ctx context.Context, claim *corev1.PersistentVolumeClaim, reason string) (*corev1.PersistentVolume, error) {
	name, pv := claim.Name, &corev1.PersistentVolume{}
	switch {
	case !claim.DeletionTimestamp.IsZero() && !controllerutil.ContainsFinalizer(claim, snapshots.ClaimProtection):
		return nil, snapshots.NewProblem(reason, "claim %s is being deleted: no snapshot of it is begun", name)
	case claim.Status.Phase != corev1.ClaimBound || claim.Spec.VolumeName == "":
		return nil, snapshots.NewProblem(reason, "claim %s is not bound yet: the snapshot is made once it is", name)
	}
	err := c.live.Get(ctx, client.ObjectKey{Name: claim.Spec.VolumeName}, pv)
	switch {
	case client.IgnoreNotFound(err) != nil:
		return nil, fmt.Errorf("reading volume %s: %w", claim.Spec.VolumeName, err)
	case err != nil || !isBoundTo(pv, claim):
		return nil, snapshots.NewProblem(reason, "claim %s is bound to volume %s, which is gone, or another claim's", name, claim.Spec.VolumeName)
	case pv.Spec.CSI == nil:
		return nil, snapshots.NewProblem(reason, "volume %s of claim %s is not of a CSI driver: it can have no snapshots", pv.Name, name)
	}
	return pv, nil
}

// isBoundTo reports whether a volume is the claim's.
func isBoundTo(pv *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) bool {
	ref := pv.Spec.ClaimRef
	return ref != nil && ref.Namespace == claim.Namespace && ref.Name == claim.Name && (ref.UID == "" || ref.UID == claim.UID)
}

// Protect keeps a claim, as it was read, until Release.
func (c *Claims) Protect(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
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

// HasToRelease reports, from the cache, whether claims of a namespace, or that of a name, are kept though only the snapshot with
// this UID needs them.
func (c *Claims) HasToRelease(ctx context.Context, of types.UID, namespace, name string) (bool, error) {
	kept, err := c.kept(ctx, namespace, name)
	if err != nil {
		return false, err
	}
	for _, claim := range kept {
		used, err := isUsed(ctx, c.client, claim, of, client.MatchingFields{index.SnapshotsByClaim: claim.Name})
		if err != nil || !used {
			return !used, err
		}
	}
	return false, nil
}

// kept returns, from the cache, the claims of a namespace, or that of a name, that snapshots keep.
func (c *Claims) kept(ctx context.Context, namespace, name string) ([]*corev1.PersistentVolumeClaim, error) {
	claims := &corev1.PersistentVolumeClaimList{Items: make([]corev1.PersistentVolumeClaim, 1)}
	var err error
	if name == "" {
		err = c.client.List(ctx, claims, client.InNamespace(namespace), client.UnsafeDisableDeepCopy)
	} else {
		err = client.IgnoreNotFound(c.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &claims.Items[0]))
	}
	if err != nil {
		return nil, fmt.Errorf("reading the claims of namespace %s: %w", namespace, err)
	}
	var kept []*corev1.PersistentVolumeClaim
	for i := range claims.Items {
		if claim := &claims.Items[i]; controllerutil.ContainsFinalizer(claim, snapshots.ClaimProtection) {
			kept = append(kept, claim)
		}
	}
	return kept, nil
}

// Release lets a claim go that a snapshot kept, unless others are being made of it. The snapshot is ready on the API server, or its content
// has ended there. All is read live after that: of snapshots that end at once, the last one to read finds no other.
func (c *Claims) Release(ctx context.Context, of types.UID, key types.NamespacedName) error {
	done, err := c.one.Acquire(ctx, key.String())
	if err != nil {
		return err
	}
	defer done()
	claim := &corev1.PersistentVolumeClaim{}
	if err := c.live.Get(ctx, key, claim); err != nil {
		return wrap.Error(client.IgnoreNotFound(err), "reading claim %s", key)
	}
	before := claim.DeepCopy()
	if !controllerutil.RemoveFinalizer(claim, snapshots.ClaimProtection) {
		return nil
	}
	for _, uses := range []func() (bool, error){
		func() (bool, error) { return isUsed(ctx, c.live, claim, of) },
		func() (bool, error) { return c.isGrouped(ctx, claim, of) },
	} {
		if used, err := uses(); used || err != nil {
			return err
		}
	}
	return wrap.Error(client.IgnoreNotFound(c.client.Patch(ctx, claim, patch.Fenced(before))), "letting claim %s go", key)
}

// ReleaseAll does what Release does for the claims of a namespace that the cache shows as kept.
func (c *Claims) ReleaseAll(ctx context.Context, of types.UID, namespace string) error {
	kept, err := c.kept(ctx, namespace, "")
	for _, claim := range kept {
		err = errors.Join(err, c.Release(ctx, of, client.ObjectKeyFromObject(claim)))
	}
	return err
}

// isUsed reports whether a VolumeSnapshot with another UID needs a claim.
func isUsed(ctx context.Context, from client.Reader, claim *corev1.PersistentVolumeClaim, but types.UID, options ...client.ListOption) (bool, error) {
	others := &snapshotv1.VolumeSnapshotList{}
	if err := from.List(ctx, others, append(options, client.InNamespace(claim.Namespace))...); err != nil {
		return false, fmt.Errorf("listing the VolumeSnapshots of namespace %s: %w", claim.Namespace, err)
	}
	for i := range others.Items {
		other := &others.Items[i]
		if other.UID == but || snapshots.SourceClaim(other) != claim.Name {
			continue
		}
		if needs, err := needsClaim(ctx, from, other); needs || err != nil {
			return needs, err
		}
	}
	return false, nil
}

// needsClaim reports whether a VolumeSnapshot needs the claim that it is made of: until it is ready. A deleted one does until its content
// has ended: of several, the last one finds none. The API server gives no deleted one a finalizer again, so few contents are read.
func needsClaim(ctx context.Context, from client.Reader, snapshot *snapshotv1.VolumeSnapshot) (bool, error) {
	switch {
	case snapshots.IsReady(snapshot):
		return false, nil
	case snapshot.DeletionTimestamp.IsZero():
		return true, nil
	case !snapshots.IsProtected(snapshot):
		return false, nil
	}
	content := &snapshotv1.VolumeSnapshotContent{}
	if err := from.Get(ctx, client.ObjectKey{Name: snapshots.ContentNameOf(snapshot)}, content); err != nil {
		return false, wrap.Error(client.IgnoreNotFound(err), "reading the content of VolumeSnapshot %s", client.ObjectKeyFromObject(snapshot))
	}
	isEnded := content.Spec.DeletionPolicy != snapshotv1.VolumeSnapshotContentDelete && metav1.HasAnnotation(content.ObjectMeta, snapshots.BeingDeleted)
	return snapshots.IsOf(content, snapshot) && !isEnded, nil
}

// isGrouped reports whether a VolumeGroupSnapshot with another UID is being made of a claim. A deleted one needs it no more: its
// members do until their contents have ended.
func (c *Claims) isGrouped(ctx context.Context, claim *corev1.PersistentVolumeClaim, but types.UID) (bool, error) {
	groups := &groupsnapshotv1.VolumeGroupSnapshotList{}
	err := c.live.List(ctx, groups, client.InNamespace(claim.Namespace))
	if err != nil && !meta.IsNoMatchError(err) && !apierrors.IsNotFound(err) {
		return false, fmt.Errorf("listing the VolumeGroupSnapshots of namespace %s: %w", claim.Namespace, err)
	}
	for i := range groups.Items {
		group := &groups.Items[i]
		// An invalid selector selects nothing.
		selector, _ := metav1.LabelSelectorAsSelector(group.Spec.Source.Selector)
		if group.UID != but && group.DeletionTimestamp.IsZero() && !snapshots.IsGroupReady(group) && selector != nil && selector.Matches(labels.Set(claim.Labels)) {
			return true, nil
		}
	}
	return false, nil
}
