// Package expansion grows the volumes of bound claims: the backend first, then, if a file
// system has to grow, the node. It follows Kubernetes' recovery from failed expansions, and
// leaves volumes of other drivers to their resizers.
package expansion

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/controllers/persistentvolumeclaim/step"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/binder"
	"github.com/stowage-dev/stowage/internal/index"
	"github.com/stowage-dev/stowage/internal/storageclass"
	"github.com/stowage-dev/stowage/internal/wake"
	"github.com/stowage-dev/stowage/internal/wrap"
)

// Expand grows a bound claim to its request:
//
//  1. the claim records the target size: from here on that attempt must finish, or be
//     known to have failed, before another begins;
//  2. the backend grows the storage;
//  3. the PersistentVolume records the new size;
//  4. the claim records its new size. If a node has to grow the file system, it records
//     instead that this is pending on the node.
//
// Each is skipped if it already holds, so that a crash after any of them is resumed.
func (r *Expander) Expand(ctx context.Context, scope *step.Scope) (*step.Wait, error) {
	claim := scope.Claim
	pv, err := r.cachedVolume(ctx, scope)
	switch {
	case err != nil || pv == nil || !binder.TiedTo(pv, claim):
		return nil, err
	case !RequestsMore(claim):
		return nil, r.forgetEarlierSize(ctx, claim, pv)
	}
	served, err := r.isServed(ctx, pv)
	switch {
	case err != nil:
		return nil, err
	case !served:
		return r.leaveToExpander(ctx, claim, pv)
	case !mayExpand(claim):
		return nil, nil
	}
	// The check above only saves live reads: a live read decides which claim has the volume.
	current := &corev1.PersistentVolume{}
	err = r.live.Get(ctx, client.ObjectKeyFromObject(pv), current)
	if err != nil || !binder.TiedTo(current, claim) {
		return nil, wrap.Error(client.IgnoreNotFound(err), "reading volume %s", pv.Name)
	}
	if served, err = r.isServed(ctx, current); !served || err != nil {
		return nil, err
	}
	return r.expandVolume(ctx, claim, current)
}

func (r *Expander) expandVolume(ctx context.Context, claim *corev1.PersistentVolumeClaim, pv *corev1.PersistentVolume) (*step.Wait, error) {
	goal := goalOf(claim, pv)
	if waiting, err := r.ensureExpansionRecorded(ctx, claim, goal); waiting != nil || err != nil {
		return waiting, err
	}
	opened, err := r.backendHolding(ctx, claim, pv)
	if err != nil {
		return r.failExpansion(ctx, claim, err)
	}
	expanded, err := backend.Expand(ctx, opened, pv.Spec.CSI.VolumeHandle, goal)
	if err == nil && expanded.Capacity.Cmp(goal) < 0 {
		err = backend.InProgress.Errorf("volume %s has %s of %s", pv.Name, expanded.Capacity.String(), goal.String())
	}
	if err != nil {
		return r.failExpansion(ctx, claim, err)
	}
	expanded.OnNode = expanded.OnNode && ptr.Deref(pv.Spec.VolumeMode, corev1.PersistentVolumeFilesystem) == corev1.PersistentVolumeFilesystem
	worth := ""
	if expanded.Advisory {
		worth = stowagev1alpha1.CapacityAdvisory
	}
	if err := r.ensureVolumeSize(ctx, claim, pv, expanded, worth); err != nil {
		return nil, err
	}
	if expanded.OnNode {
		return nil, r.leaveToNode(ctx, claim, pv)
	}
	return nil, r.finishExpansion(ctx, claim, pv, worth)
}

// ensureExpansionRecorded records the target size before the backend is called. If it was
// recorded before, the claim is read live. The cache of a new leader may show a claim that is
// gone, or an expansion that was finished since.
func (r *Expander) ensureExpansionRecorded(ctx context.Context, claim *corev1.PersistentVolumeClaim, goal resource.Quantity) (*step.Wait, error) {
	if !isRecorded(claim, goal) {
		if waiting, err := r.awaitAllowed(ctx, claim); waiting != nil || err != nil {
			return waiting, err
		}
		return nil, r.recordExpansion(ctx, claim, goal)
	}
	current := &corev1.PersistentVolumeClaim{}
	err := r.live.Get(ctx, client.ObjectKeyFromObject(claim), current)
	switch {
	case client.IgnoreNotFound(err) != nil:
		return nil, fmt.Errorf("reading claim %s/%s: %w", claim.Namespace, claim.Name, err)
	case apierrors.IsNotFound(err) || current.UID != claim.UID || current.ResourceVersion != claim.ResourceVersion:
		return &step.Wait{After: wake.AfterContention}, nil
	}
	return nil, nil
}

// awaitAllowed refuses what the claim's class does not allow, in case no API server did. A
// deleted class allowed it when the request was made.
func (r *Expander) awaitAllowed(ctx context.Context, claim *corev1.PersistentVolumeClaim) (*step.Wait, error) {
	class := &storagev1.StorageClass{}
	err := r.client.Get(ctx, client.ObjectKey{Name: storageclass.Of(claim)}, class)
	switch {
	case apierrors.IsNotFound(err) || storageclass.Of(claim) == "":
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading StorageClass %s: %w", storageclass.Of(claim), err)
	case !ptr.Deref(class.AllowVolumeExpansion, false):
		return waitForAllowance(class), nil
	}
	return nil, nil
}

// backendHolding opens the backend of a volume. Its errors are not the request's fault: the
// expansion is retried.
func (r *Expander) backendHolding(ctx context.Context, claim *corev1.PersistentVolumeClaim, pv *corev1.PersistentVolume) (backend.Backend, error) {
	name := index.BackendOf(pv)[0]
	object := &stowagev1alpha1.StorageBackend{}
	if err := r.client.Get(ctx, client.ObjectKey{Name: name}, object); err != nil {
		return nil, backend.Unavailable.Errorf("reading StorageBackend %s, which holds volume %s: %w", name, pv.Name, err)
	}
	opened, err := r.open(claim, object)
	if err != nil {
		return nil, backend.Unavailable.Errorf("%w", err)
	}
	return opened, nil
}

// cachedVolume returns the claim's volume from the cache, or nil. It must not be changed.
func (r *Expander) cachedVolume(ctx context.Context, scope *step.Scope) (*corev1.PersistentVolume, error) {
	if scope.Volume != nil {
		return scope.Volume, nil
	}
	pv := &corev1.PersistentVolume{}
	err := r.client.Get(ctx, client.ObjectKey{Name: scope.Claim.Spec.VolumeName}, pv, wake.Unhurried, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, wrap.Error(client.IgnoreNotFound(err), "reading volume %s", scope.Claim.Spec.VolumeName)
	}
	return pv, nil
}

// isServed reports whether a volume is in a StorageBackend.
func (r *Expander) isServed(ctx context.Context, pv *corev1.PersistentVolume) (bool, error) {
	if len(index.BackendOf(pv)) == 0 {
		return false, nil
	}
	return r.drivers.ServesVolume(ctx, pv)
}
