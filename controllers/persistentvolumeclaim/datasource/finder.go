// Package datasource finds what a claim's volume is filled from: the volume of another claim. The
// provisioner asks it before it calls a backend, and whenever it repeats or undoes the call. What
// prevents the copy is an error with the reason, and no empty volume takes its place. The package
// calls no storage.
package datasource

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/provisioned"
)

const withoutDataSource = "create the claim without dataSource"

// Finder finds the sources of claims.
type Finder struct {
	client client.Client
}

// New makes a finder.
func New(deps reconciler.Dependencies) *Finder {
	return &Finder{client: deps.Client}
}

// Fill sets the source of a claim's request. Once a backend was called, the source may be deleted:
// the pending operation is still completed or undone.
func (f *Finder) Fill(ctx context.Context, claim *corev1.PersistentVolumeClaim, object *stowagev1alpha1.StorageBackend, request *backend.Request) error {
	ref := provisioned.DataSource(claim)
	if ref == nil {
		return nil
	}
	source, err := f.copied(ctx, claim, object)
	if err != nil && controllerutil.ContainsFinalizer(claim, stowagev1alpha1.ProvisioningFinalizer) {
		return nil
	}
	request.Source = source
	return err
}
