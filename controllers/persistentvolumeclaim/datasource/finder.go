// Package datasource finds what a claim's volume is filled from: the volume of another claim, or a
// snapshot. The provisioner asks it before it calls a backend, and whenever it repeats or undoes the
// call. What prevents the copy is an error with the reason, and no empty volume takes its place.
//
// The snapshot is recorded on the claim before the first call. From then on only the record counts: the
// VolumeSnapshot may be gone, or another may have its name. The package calls no storage.
package datasource

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/controllers/persistentvolumeclaim/step"
	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/drivers"
	"github.com/stowage-dev/stowage/internal/provisioned"
	"github.com/stowage-dev/stowage/internal/storageclass"
)

// Finder finds the sources of claims.
type Finder struct {
	client   client.Client
	live     client.Reader
	drivers  drivers.Drivers
	copies   copies
	restores restores
	grants   grants
}

// New makes a finder. Open opens backends.
func New(deps reconciler.Dependencies, open step.Open) *Finder {
	return &Finder{
		client: deps.Client, live: deps.Live, drivers: drivers.New(deps.Client),
		copies: copies{deps.Client}, restores: restores{deps.Live, open}, grants: newGrants(deps.Live),
	}
}

// FindPlace finds out whether a claim of a class that waits for a pod needs none: its volume lies where its data
// source does, and the scheduler follows the volume.
func (f *Finder) FindPlace(ctx context.Context, scope *step.Scope) (*step.Wait, error) {
	scope.Placed = storageclass.WaitsForConsumer(scope.Class) && f.places(ctx, scope.Claim, scope.Class)
	return nil, nil
}

// places reports whether the volume of a claim lies where its source does.
func (f *Finder) places(ctx context.Context, claim *corev1.PersistentVolumeClaim, class *storagev1.StorageClass) bool {
	ref := provisioned.DataSource(claim)
	if ref == nil || !backend.IsOurs(class.Provisioner) || !provisioned.IsSnapshot(ref) && !provisioned.IsClaim(ref) {
		return false
	}
	object := &stowagev1alpha1.StorageBackend{}
	if f.client.Get(ctx, client.ObjectKey{Name: class.Parameters[stowagev1alpha1.BackendParameter]}, object) != nil {
		return false
	}
	opened, err := f.restores.open(claim, object)
	return err == nil && opened.Capabilities().InPlace
}

// Fill sets the source of a claim's request. Once a backend was called, the source may be deleted:
// the pending operation is still completed or undone. The request has the recorded source then. A clone
// that an earlier version began has no record, and does without.
func (f *Finder) Fill(ctx context.Context, claim *corev1.PersistentVolumeClaim, object *stowagev1alpha1.StorageBackend, request *backend.Request) (err error) {
	ref := provisioned.DataSource(claim)
	switch {
	case ref == nil || request.Source != nil && !request.Source.IsUnknown():
		return nil
	case provisioned.Elsewhere(claim) != "":
		if err := f.grants.check(ctx, claim); err != nil {
			return err
		}
	}
	if provisioned.IsSnapshot(ref) {
		request.Source, err = f.restores.sourceOf(ctx, claim, object)
		return err
	}
	source, err := f.copies.sourceOf(ctx, claim, object)
	if err != nil && controllerutil.ContainsFinalizer(claim, stowagev1alpha1.ProvisioningFinalizer) {
		return nil
	}
	request.Source = source
	return err
}
