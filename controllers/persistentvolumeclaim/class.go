package persistentvolumeclaim

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/component-helpers/storage/volume"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/controllers/persistentvolumeclaim/step"
	"github.com/stowage-dev/stowage/internal/migration"
	"github.com/stowage-dev/stowage/internal/patch"
	"github.com/stowage-dev/stowage/internal/storageclass"
	"github.com/stowage-dev/stowage/internal/wrap"
)

// findClass looks up the claim's class. A missing class is no error yet: a volume of that
// class may exist.
func (r *Reconciler) findClass(ctx context.Context, scope *step.Scope) (*step.Wait, error) {
	name := storageclass.Of(scope.Claim)
	if name == "" {
		return nil, nil
	}
	class := &storagev1.StorageClass{}
	if err := r.client.Get(ctx, client.ObjectKey{Name: name}, class); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	scope.Class = class
	return nil, nil
}

// assignDefaultClass gives the default class to a claim that was created before there was one.
// A claim that names the class "" wants none, and gets none.
func (r *Reconciler) assignDefaultClass(ctx context.Context, scope *step.Scope) (*step.Wait, error) {
	claim := scope.Claim
	if scope.Volume != nil || volume.PersistentVolumeClaimHasClass(claim) {
		return nil, nil
	}
	classes := &storagev1.StorageClassList{}
	if err := r.client.List(ctx, classes); err != nil {
		return nil, fmt.Errorf("listing StorageClasses: %w", err)
	}
	class := DefaultOf(classes.Items)
	if class == nil {
		return nil, nil
	}
	before := claim.DeepCopy()
	claim.Spec.StorageClassName = &class.Name
	err := r.client.Patch(ctx, claim, patch.Fenced(before))
	// The update wakes the claim, and the next pass has the class.
	return &step.Wait{}, wrap.Error(err, "giving claim %s/%s the default class %s", claim.Namespace, claim.Name, class.Name)
}

// DefaultOf returns the default class: of several the newest, then the first by name, as
// Kubernetes chooses.
func DefaultOf(classes []storagev1.StorageClass) *storagev1.StorageClass {
	defaults := slices.DeleteFunc(slices.Clone(classes), func(class storagev1.StorageClass) bool { return !storageclass.IsDefault(&class) })
	if len(defaults) == 0 {
		return nil
	}
	return new(slices.MinFunc(defaults, func(a, b storagev1.StorageClass) int {
		return cmp.Or(b.CreationTimestamp.Compare(a.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	}))
}

// ensureMigrated marks a claim with the CSI driver that took over the in-tree provisioner in
// its annotation. Without the mark the sidecars of that driver ignore the claim.
func (r *Reconciler) ensureMigrated(ctx context.Context, scope *step.Scope) (*step.Wait, error) {
	marked := *scope.Claim
	marked.Annotations = maps.Clone(marked.Annotations)
	if !migration.MarkClaim(&marked) {
		return nil, nil
	}
	return step.Annotate(ctx, r.client, scope.Claim, marked.Annotations)
}
