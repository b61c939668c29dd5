// Package drivers answers which CSI drivers Stowage serves: its own, and those with a
// StorageBackend of kind csi. The reconcilers ask before they act on a claim, a volume or an
// attachment. Objects of all other drivers are left alone.
//
// It reads only StorageBackends, from the cache, and writes nothing. Steps that remove
// something confirm what they need with live reads of their own.
package drivers

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/component-helpers/storage/volume"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/wake"
	"github.com/stowage-dev/stowage/internal/wrap"
)

// Drivers are the CSI drivers that Stowage serves. All methods can be called concurrently. An
// error means that the cache has no answer: the caller tries again.
type Drivers struct {
	cache client.Reader
}

// New returns the drivers of the StorageBackends in a cache.
func New(cache client.Reader) Drivers { return Drivers{cache} }

// Serves reports whether a driver is one of Stowage's, or has a StorageBackend of kind csi. One
// that is being deleted counts: volumes of its driver may still need it.
func (d Drivers) Serves(ctx context.Context, driver string) (bool, error) {
	if backend.IsOurs(driver) {
		return true, nil
	}
	return d.isCSI(ctx, driver)
}

// Attaches reports whether a driver is served, and its volumes may have to be attached to nodes.
// Kubernetes makes no VolumeAttachment for a driver whose CSIDriver says that none is needed.
func (d Drivers) Attaches(ctx context.Context, driver string) (bool, error) {
	if backend.IsOurs(driver) {
		return backend.NeedsAttach(driver), nil
	}
	return d.isCSI(ctx, driver)
}

// ServesVolume reports whether the driver of a volume is served.
func (d Drivers) ServesVolume(ctx context.Context, pv *corev1.PersistentVolume) (bool, error) {
	if pv.Spec.CSI == nil {
		return false, nil
	}
	return d.Serves(ctx, pv.Spec.CSI.Driver)
}

// AttachesVolume reports whether a volume may have to be attached to nodes, by a driver that is
// served.
func (d Drivers) AttachesVolume(ctx context.Context, pv *corev1.PersistentVolume) (bool, error) {
	if pv.Spec.CSI == nil {
		return false, nil
	}
	return d.Attaches(ctx, pv.Spec.CSI.Driver)
}

// MadeVolume reports whether a driver that is served made a volume for a claim: by Stowage, or by
// the provisioner that Stowage stands in for. The storage of other volumes, which people made, is
// never removed.
func (d Drivers) MadeVolume(ctx context.Context, pv *corev1.PersistentVolume) (bool, error) {
	if pv.Spec.CSI == nil || pv.Spec.CSI.VolumeHandle == "" || pv.Annotations[volume.AnnDynamicallyProvisioned] != pv.Spec.CSI.Driver {
		return false, nil
	}
	return d.Serves(ctx, pv.Spec.CSI.Driver)
}

// isCSI reports whether a driver has a StorageBackend of kind csi, which has the driver's name.
// Provisioners that no StorageBackend can be named after are not read.
func (d Drivers) isCSI(ctx context.Context, driver string) (bool, error) {
	if len(driver) > validation.DNS1123LabelMaxLength || len(validation.IsDNS1123Subdomain(driver)) > 0 {
		return false, nil
	}
	object := &stowagev1alpha1.StorageBackend{}
	if err := d.cache.Get(ctx, client.ObjectKey{Name: driver}, object, wake.Unhurried, client.UnsafeDisableDeepCopy); err != nil {
		return false, wrap.Error(client.IgnoreNotFound(err), "reading StorageBackend %s", driver)
	}
	return object.Spec.CSI != nil && object.Spec.CSI.Driver == driver, nil
}
