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
	pv, err := step.CachedVolume(ctx, r.client, scope)
	switch {
	case err != nil || pv == nil || !binder.TiedTo(pv, claim):
		return nil, err
	case !RequestsMore(claim):
		return nil, r.forgetEarlierSize(ctx, claim, pv)
	}
	served, err := step.IsServed(ctx, r.drivers, pv)
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
	if served, err = step.IsServed(ctx, r.drivers, current); !served || err != nil {
		return nil, err
	}
	return r.expandVolume(ctx, claim, current)
}

func (r *Expander) expandVolume(ctx context.Context, claim *corev1.PersistentVolumeClaim, pv *corev1.PersistentVolume) (*step.Wait, error) {
	goal := goalOf(claim, pv)
	if waiting, err := r.ensureExpansionRecorded(ctx, claim, goal); waiting != nil || err != nil {
		return waiting, err
	}
	opened, err := r.open.Holding(ctx, r.client, claim, pv)
	if err != nil {
		return r.failExpansion(ctx, claim, err)
	}
	expanded, err := backend.Expand(ctx, opened, backend.ExpandRequest{ID: pv.Spec.CSI.VolumeHandle, Volume: pv, Capacity: goal})
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
	if current, err := step.IsCurrent(ctx, r.live, claim); !current || err != nil {
		return &step.Wait{After: wake.AfterContention}, err
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
