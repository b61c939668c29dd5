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
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/controllers/persistentvolumeclaim/step"
	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/drivers"
	"github.com/stowage-dev/stowage/internal/provisioned"
)

// Finder finds the sources of claims.
type Finder struct {
	client   client.Client
	live     client.Reader
	drivers  drivers.Drivers
	copies   copies
	restores restores
}

// New makes a finder. Open opens backends.
func New(deps reconciler.Dependencies, open step.Open) *Finder {
	return &Finder{client: deps.Client, live: deps.Live, drivers: drivers.New(deps.Client), copies: copies{deps.Client}, restores: restores{deps.Live, open}}
}

// Fill sets the source of a claim's request. Once a backend was called, the source may be deleted:
// the pending operation is still completed or undone. The request has the recorded source then. A clone
// that an earlier version began has no record, and does without.
func (f *Finder) Fill(ctx context.Context, claim *corev1.PersistentVolumeClaim, object *stowagev1alpha1.StorageBackend, request *backend.Request) (err error) {
	ref := provisioned.DataSource(claim)
	switch {
	case ref == nil || request.Source != nil && !request.Source.IsUnknown():
		return nil
	case provisioned.IsSnapshot(ref):
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
