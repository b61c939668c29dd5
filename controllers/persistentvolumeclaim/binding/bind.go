// Package binding finds the volume that a claim gets and ties the two to each other, in four
// writes that can each be repeated. It also restores a binding that a person removed, and
// finds lost volumes. What fits is decided in internal/binder.
package binding

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/stowage-dev/stowage/controllers/persistentvolumeclaim/protection"
	"github.com/stowage-dev/stowage/controllers/persistentvolumeclaim/step"
	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/internal/bindable"
	"github.com/stowage-dev/stowage/internal/binder"
	"github.com/stowage-dev/stowage/internal/effect"
	"github.com/stowage-dev/stowage/internal/event"
	"github.com/stowage-dev/stowage/internal/patch"
	"github.com/stowage-dev/stowage/internal/provisioned"
	"github.com/stowage-dev/stowage/internal/uses"
)

// Binder finds the volume that a claim gets, and ties the two to each other.
type Binder struct {
	client client.Client
	live   client.Reader
	scope  reconciler.Scope
	index  *binder.Index
	events events.EventRecorder
	// mismatches has the last event of each claim about volumes that a controller tied to it.
	mismatches event.Last
	protector  *protection.Protector
}

// New makes a binder that finds volumes in an index.
func New(deps reconciler.Dependencies, index *binder.Index, protector *protection.Protector) *Binder {
	return &Binder{client: deps.Client, live: deps.Live, scope: deps.Scope, index: index, events: deps.Events, protector: protector}
}

// Forget drops the last event of a deleted claim.
func (r *Binder) Forget(claim types.NamespacedName) { r.mismatches.Forget(claim) }

// Bind ties volume and claim to each other, in four writes. Each is skipped if it already
// holds, so that a crash after any of them is resumed:
//
//  1. the volume's claimRef with the claim's UID: the point of no return;
//  2. the volume's phase;
//  3. the claim's volumeName, and with it the end of provisioning;
//  4. the claim's phase and what it got.
func (r *Binder) Bind(ctx context.Context, scope *step.Scope) (*step.Wait, error) {
	claim := scope.Claim
	pv, err := r.bindVolume(ctx, scope.Volume, claim)
	if err != nil {
		r.index.Release(scope.Volume.Name, claim.UID)
		return nil, err
	}
	if pv, err = r.setVolumeBound(ctx, pv); err != nil {
		return nil, err
	}
	if err := r.bindClaim(ctx, claim, pv); err != nil {
		return nil, err
	}
	return nil, r.SetClaimBound(ctx, claim, pv)
}

// bindVolume returns the volume after the write. Its argument may be shared with the cache and
// the index, and is not changed.
func (r *Binder) bindVolume(ctx context.Context, pv *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) (*corev1.PersistentVolume, error) {
	tied := *pv
	tied.Annotations = maps.Clone(pv.Annotations)
	changed := binder.BindVolume(&tied, claim)
	if r.scope == reconciler.ClusterScope && pv.DeletionTimestamp.IsZero() && (changed || !binder.Completed(claim)) {
		// The finalizer must be in this very write, even if a person tied the volume to the
		// claim. A volume that is deleted before it is protected would leave its claim.
		tied.Finalizers = slices.Clone(pv.Finalizers)
		changed = controllerutil.AddFinalizer(&tied, uses.VolumeProtection) || changed
	}
	if !changed {
		return pv, nil
	}
	written := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: pv.Name}}
	// The resourceVersion is the fence: of two workers that read the volume as free, one
	// succeeds.
	if err := r.client.Patch(ctx, written, patch.ClaimRef(pv, &tied)); err != nil {
		return nil, fmt.Errorf("binding volume %s to claim %s/%s: %w", pv.Name, claim.Namespace, claim.Name, err)
	}
	return written, nil
}

func (r *Binder) setVolumeBound(ctx context.Context, pv *corev1.PersistentVolume) (*corev1.PersistentVolume, error) {
	if pv.Status.Phase == corev1.VolumeBound {
		return pv, nil
	}
	written := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: pv.Name}}
	if err := r.client.Status().Patch(ctx, written, patch.VolumePhase(pv, corev1.VolumeBound, "")); err != nil {
		return nil, fmt.Errorf("setting volume %s to Bound: %w", pv.Name, err)
	}
	return written, nil
}

// bindClaim writes the claim's side. If provisioning made this very volume, the same write
// clears the pending operation: from here on the PersistentVolume is the record of the
// storage.
func (r *Binder) bindClaim(ctx context.Context, claim *corev1.PersistentVolumeClaim, pv *corev1.PersistentVolume) error {
	before := *claim
	before.Annotations, before.Finalizers = maps.Clone(claim.Annotations), slices.Clone(claim.Finalizers)
	changed := binder.BindClaim(claim, pv)
	if pv.Name == provisioned.VolumeID(claim) {
		changed = provisioned.ClearIntent(claim) || changed
	}
	if !changed {
		return nil
	}
	if err := r.client.Patch(ctx, claim, patch.VolumeName(&before, claim)); err != nil {
		return fmt.Errorf("binding claim %s/%s to volume %s: %w", claim.Namespace, claim.Name, pv.Name, err)
	}
	return nil
}

// SetClaimBound writes the status of a bound claim.
func (r *Binder) SetClaimBound(ctx context.Context, claim *corev1.PersistentVolumeClaim, pv *corev1.PersistentVolume) error {
	before := claim.Status
	unused, err := r.protector.SetUnused(ctx, claim)
	if err != nil {
		return err
	}
	if bound := SetBound(claim, pv); !bound && !unused {
		return nil
	}
	if err := r.client.Status().Patch(ctx, claim, patch.BoundStatus(before, claim)); err != nil {
		return fmt.Errorf("setting claim %s/%s to Bound: %w", claim.Namespace, claim.Name, err)
	}
	if before.Phase != corev1.ClaimBound {
		r.recordBound(ctx, claim, pv)
	}
	return nil
}

// SetBound sets a claim's status in memory and reports whether it changed. It does not touch
// the capacity or the attributes of a bound claim: while a file system grows, the node writes the
// capacity. After a change of attributes the cache may still show the volume as it was.
func SetBound(claim *corev1.PersistentVolumeClaim, pv *corev1.PersistentVolume) bool {
	status := &claim.Status
	changed := bindable.Set(claim, boundCondition(pv))
	if status.Phase != corev1.ClaimBound || status.Capacity == nil {
		status.Capacity, status.CurrentVolumeAttributesClassName = usableCapacity(pv), nil
		if class := pv.Spec.VolumeAttributesClassName; class != nil {
			status.CurrentVolumeAttributesClassName = ptr.To(*class)
		}
		changed = true
	}
	if !slices.Equal(status.AccessModes, pv.Spec.AccessModes) {
		// A copy: the client decodes the API server's answer into it.
		status.AccessModes = slices.Clone(pv.Spec.AccessModes)
		changed = true
	}
	status.Phase = corev1.ClaimBound
	return provisioned.ClearRecords(claim) || changed
}

// usableCapacity returns the capacity of a claim that is bound to a volume. After a growth it
// stays the earlier one until a node has grown the file system.
func usableCapacity(pv *corev1.PersistentVolume) corev1.ResourceList {
	capacity := maps.Clone(pv.Spec.Capacity)
	if had, err := resource.ParseQuantity(pv.Annotations[step.AnnPreResizeCapacity]); err == nil {
		capacity[corev1.ResourceStorage] = had
	}
	return capacity
}

// recordBound logs a binding, and records that the volume was provisioned.
func (r *Binder) recordBound(ctx context.Context, claim *corev1.PersistentVolumeClaim, pv *corev1.PersistentVolume) {
	if provisioned.Here(pv) {
		r.RecordProvisioned(claim, pv)
	}
	effect.Log(ctx, effect.Bound, claim.CreationTimestamp.Time, claim, pv)
}

// RecordProvisioned records the event that a volume was provisioned for a claim.
func (r *Binder) RecordProvisioned(claim *corev1.PersistentVolumeClaim, pv *corev1.PersistentVolume) {
	events := event.Since(claim.CreationTimestamp.Time, r.events)
	events.Eventf(claim, pv, corev1.EventTypeNormal, event.ProvisioningSucceeded, "Provision", "Successfully provisioned volume %s", pv.Name)
}
