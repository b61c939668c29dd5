package resolve

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/attach"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

// resolveExisting translates a volume of source gcePersistentDisk to Stowage's driver on this node:
// from then on it is a disk like any other. If no StorageBackend allows that, no further pod gets
// it, and a pod that has it keeps it. Other volumes are returned unchanged.
func (r *Resolver) resolveExisting(ctx context.Context, resolved *ResolvedVolume, volume *corev1.PersistentVolume) (*corev1.PersistentVolume, error) {
	if !attach.IsInTreeDisk(volume) {
		return volume, nil
	}
	allowed, err := r.allowsExisting(ctx)
	if err != nil {
		return nil, err
	}
	translated, err := r.translateExisting(ctx, volume)
	switch {
	case allowed:
		return translated, err
	case err != nil:
		return volume, nil //nolint:nilerr // its type is then reported as unsupported
	}
	refused := MayBeAllowed{Err: ErrUnserved(volumes.Spec{Pod: resolved.Pod, Volume: resolved.Spec.Volume, PersistentVolume: volume})}
	resolved.Refused = cmp.Or[error](resolved.Refused, refused)
	return translated, nil
}

// allowsExisting reports whether any StorageBackend allows in-tree disks. The manager decides which
// backend attaches which disk.
func (r *Resolver) allowsExisting(ctx context.Context) (bool, error) {
	backends := &stowagev1alpha1.StorageBackendList{}
	err := r.Live.List(ctx, backends)
	if err != nil && !apierrors.IsForbidden(err) {
		return false, fmt.Errorf("listing the StorageBackends: %w", err)
	}
	return slices.ContainsFunc(backends.Items, func(backend stowagev1alpha1.StorageBackend) bool {
		return backend.Spec.GCE != nil && backend.Spec.GCE.ExistingDisks
	}), nil
}

// translateExisting uses the cached node. That the node can't have the disk needs a live read.
func (r *Resolver) translateExisting(ctx context.Context, volume *corev1.PersistentVolume) (*corev1.PersistentVolume, error) {
	node, key := &corev1.Node{}, client.ObjectKey{Name: r.Node}
	if err := r.Cached.Get(ctx, key, node); err == nil {
		if translated, err := attach.TranslateInTreeDisk(volume, node); err == nil {
			return translated, nil
		}
	}
	node = &corev1.Node{}
	if err := r.get(ctx, key, node, "node "+r.Node); err != nil {
		return nil, err
	}
	return attach.TranslateInTreeDisk(volume, node)
}
