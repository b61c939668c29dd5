package datasource

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/storage/volume"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/stowage-dev/stowage/controllers/persistentvolumeclaim/step"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/event"
	"github.com/stowage-dev/stowage/internal/index"
	"github.com/stowage-dev/stowage/internal/patch"
	"github.com/stowage-dev/stowage/internal/provisioned"
	"github.com/stowage-dev/stowage/internal/wake"
	"github.com/stowage-dev/stowage/internal/wrap"
)

// CloningProtection is external-provisioner's finalizer of a claim whose volume is copied. It stays until
// the claim is deleted, and no copy is being made.
const CloningProtection = "provisioner.storage.kubernetes.io/cloning-protection"

// ensureProtected keeps the claim whose volume is copied, from before the first call: a driver finds a copy
// by its source alone. The API server refuses it for a claim that is being deleted.
func (f *Finder) ensureProtected(ctx context.Context, clone *corev1.PersistentVolumeClaim, source backend.Source) error {
	key := client.ObjectKey{Namespace: source.Claim.Namespace, Name: source.Claim.Name}
	copied := &corev1.PersistentVolumeClaim{}
	// Live, after the claim says that it may be copied: Release writes nothing before it has looked for that.
	if err := f.live.Get(ctx, key, copied); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading claim %s, which is to be copied: %w", key, err)
	}
	if copied.UID != source.Claim.UID || !copied.DeletionTimestamp.IsZero() {
		return backend.Unavailable.Errorf("claim %s, which is to be copied, is deleted, or was created again: %s", key, withoutDataSource)
	}
	before := copied.DeepCopy()
	isChanged := controllerutil.AddFinalizer(copied, CloningProtection)
	if source.Namespace != "" {
		isChanged = noteCopy(copied, clone) || isChanged
	}
	if !isChanged {
		return nil
	}
	return wrap.Error(f.client.Patch(ctx, copied, patch.Fenced(before)), "keeping claim %s while it is copied", key)
}

// Release lets a deleted claim go that was copied, once no copy is being made. The finalizer may be of
// external-provisioner, from before Stowage took over its driver.
func (f *Finder) Release(ctx context.Context, scope *step.Scope) (*step.Wait, error) {
	claim := scope.Claim
	if !controllerutil.ContainsFinalizer(claim, CloningProtection) {
		return nil, nil
	}
	if served, err := f.isServed(ctx, claim); !served || err != nil {
		return nil, err
	}
	// The cache only saves live reads: a live read has to confirm that no copy is being made.
	ofClaim := client.MatchingFields{index.ClaimsBySource: index.SourceKey(provisioned.ClaimKind, client.ObjectKeyFromObject(claim))}
	if waiting, err := f.awaitCopies(ctx, f.client, claim, ofClaim); waiting != nil || err != nil {
		return waiting, err
	}
	if waiting, err := f.awaitCopies(ctx, f.live, claim, client.InNamespace(claim.Namespace)); waiting != nil || err != nil {
		return waiting, err
	}
	if waiting, err := f.awaitNoted(ctx, claim); waiting != nil || err != nil {
		return waiting, err
	}
	before := claim.DeepCopy()
	controllerutil.RemoveFinalizer(claim, CloningProtection)
	err := f.client.Patch(ctx, claim, patch.Fenced(before))
	return nil, wrap.Error(client.IgnoreNotFound(err), "letting claim %s/%s go, which was copied", claim.Namespace, claim.Name)
}

// awaitCopies waits for copies of a claim that are being made, as a reader shows them.
func (f *Finder) awaitCopies(ctx context.Context, from client.Reader, claim *corev1.PersistentVolumeClaim, options ...client.ListOption) (*step.Wait, error) {
	copies := &corev1.PersistentVolumeClaimList{}
	if err := from.List(ctx, copies, options...); err != nil {
		return nil, fmt.Errorf("listing the copies of claim %s/%s: %w", claim.Namespace, claim.Name, err)
	}
	for i := range copies.Items {
		if clone := &copies.Items[i]; f.isBeingMade(ctx, clone, claim) {
			return waitForCopy(provisioned.NameFor(claim.Namespace, clone)), nil
		}
	}
	return nil, nil
}

func waitForCopy(name string) *step.Wait {
	return &step.Wait{
		Event: event.ClaimInUse, Message: "the claim is kept while its volume is copied for claim " + name, After: wake.WithoutAnswer,
	}
}

// isServed reports whether the driver of a claim's volume is served. One that isn't known is no other
// program's, either.
func (f *Finder) isServed(ctx context.Context, claim *corev1.PersistentVolumeClaim) (bool, error) {
	pv := &corev1.PersistentVolume{}
	err := f.client.Get(ctx, client.ObjectKey{Name: claim.Spec.VolumeName}, pv)
	switch driver := provisionerOf(claim); {
	case err == nil:
		return f.drivers.ServesVolume(ctx, pv)
	case client.IgnoreNotFound(err) != nil:
		return false, fmt.Errorf("reading volume %s: %w", claim.Spec.VolumeName, err)
	case driver == "":
		return true, nil
	default:
		return f.drivers.Serves(ctx, driver)
	}
}

// isBeingMade reports whether a claim's volume may just be made as a copy of another claim's. Of drivers
// that aren't served, only the phase is known.
func (f *Finder) isBeingMade(ctx context.Context, clone, of *corev1.PersistentVolumeClaim) bool {
	if !isCopyOf(clone, of) {
		return false
	}
	if clone.Namespace != of.Namespace {
		// The record in its status proves that it may: each tenant can name a claim of another.
		return provisioned.HasIntent(clone) && provisioned.RestoreOf(clone).Claim == of.UID
	}
	driver := provisionerOf(clone)
	served, err := f.drivers.Serves(ctx, driver)
	return provisioned.HasIntent(clone) || driver != "" && (err != nil || !served)
}

// isCopyOf reports whether a pending claim names another one as its source.
func isCopyOf(clone, of *corev1.PersistentVolumeClaim) bool {
	kind, source, _ := provisioned.SourceKey(clone)
	return kind == provisioned.ClaimKind && source == client.ObjectKeyFromObject(of) && clone.Status.Phase == corev1.ClaimPending
}

// provisionerOf returns the driver that makes, or made, a claim's volume; "" if none was asked yet.
func provisionerOf(claim *corev1.PersistentVolumeClaim) string {
	if name := claim.Annotations[volume.AnnStorageProvisioner]; name != "" {
		return name
	}
	return claim.Annotations[volume.AnnBetaStorageProvisioner]
}

// ClaimCopied wakes the claim that another one is a copy of.
func (*Finder) ClaimCopied(_ context.Context, clone client.Object) []reconcile.Request {
	kind, source, _ := provisioned.SourceKey(clone.(*corev1.PersistentVolumeClaim))
	if kind != provisioned.ClaimKind {
		return nil
	}
	return []reconcile.Request{{NamespacedName: source}}
}
