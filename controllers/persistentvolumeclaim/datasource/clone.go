package datasource

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/binder"
	"github.com/stowage-dev/stowage/internal/index"
	"github.com/stowage-dev/stowage/internal/provisioned"
)

// copies finds the volumes of other claims. Reads are of the cache.
type copies struct{ client client.Reader }

// sourceOf returns the volume that a claim's volume is cloned from.
func (c copies) sourceOf(ctx context.Context, claim *corev1.PersistentVolumeClaim, object *stowagev1alpha1.StorageBackend) (*backend.Source, error) {
	_, key, _ := provisioned.SourceKey(claim)
	source := &corev1.PersistentVolumeClaim{}
	if err := c.client.Get(ctx, key, source); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, backend.Unavailable.Errorf("claim %s, which is to be copied, does not exist: create it, or %s", key, withoutDataSource)
		}
		return nil, fmt.Errorf("reading claim %s, which is to be copied: %w", key, err)
	}
	if err := copyable(claim, source); err != nil {
		return nil, err
	}
	found, err := c.volumeOf(ctx, source, object)
	if err != nil {
		return nil, err
	}
	found.Namespace = provisioned.Elsewhere(claim)
	if _, fits, err := recordOf(claim, *found).Text(); !fits || err != nil {
		return nil, backend.Invalid.Errorf("claim %s, which is to be copied, has a volume with a handle of %d bytes, which is too long: %s",
			source.Name, len(found.ID), withoutDataSource)
	}
	return found, nil
}

// copyable returns why one claim's volume cannot become a clone of the other's.
func copyable(claim, source *corev1.PersistentVolumeClaim) error {
	wanted, has := claim.Spec.Resources.Requests[corev1.ResourceStorage], source.Status.Capacity[corev1.ResourceStorage]
	switch {
	case source.UID == claim.UID:
		return backend.Invalid.Errorf("the claim is to be a copy of itself: name another in dataSource")
	case !source.DeletionTimestamp.IsZero():
		return backend.Invalid.Errorf("claim %s, which is to be copied, is being deleted: %s", source.Name, withoutDataSource)
	case !binder.Completed(source) || source.Status.Phase != corev1.ClaimBound:
		return backend.Unavailable.Errorf("claim %s, which is to be copied, has no volume yet", source.Name)
	case ptr.Deref(source.Spec.VolumeMode, corev1.PersistentVolumeFilesystem) != ptr.Deref(claim.Spec.VolumeMode, corev1.PersistentVolumeFilesystem):
		return backend.Invalid.Errorf("claim %s, which is to be copied, has another volumeMode: ask for the same", source.Name)
	case wanted.Cmp(has) < 0:
		return backend.Invalid.Errorf("claim %s, which is to be copied, has %s: ask for at least as much", source.Name, has.String())
	}
	return nil
}

// volumeOf returns the volume of a bound claim, if it is in the backend.
func (c copies) volumeOf(ctx context.Context, source *corev1.PersistentVolumeClaim, object *stowagev1alpha1.StorageBackend) (*backend.Source, error) {
	pv := &corev1.PersistentVolume{}
	err := c.client.Get(ctx, client.ObjectKey{Name: source.Spec.VolumeName}, pv)
	switch {
	case client.IgnoreNotFound(err) != nil:
		return nil, fmt.Errorf("reading volume %s, which is to be copied: %w", source.Spec.VolumeName, err)
	case apierrors.IsNotFound(err) || !binder.TiedTo(pv, source):
		return nil, backend.Unavailable.Errorf("claim %s, which is to be copied, has lost its volume", source.Name)
	case !slices.Contains(index.BackendOf(pv), object.Name) || pv.Spec.CSI.Driver != backend.DriverOf(object):
		return nil, backend.Invalid.Errorf("claim %s, which is to be copied, has a volume outside of StorageBackend %s: "+
			"use the class of that claim, or create the claim without dataSource and copy the data", source.Name, object.Name)
	}
	return &backend.Source{
		ID:    pv.Spec.CSI.VolumeHandle,
		Claim: stowagev1alpha1.ClaimReference{Namespace: source.Namespace, Name: source.Name, UID: source.UID},
	}, nil
}
