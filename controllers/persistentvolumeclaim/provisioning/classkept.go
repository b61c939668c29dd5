package provisioning

import (
	"context"
	"fmt"

	storagev1 "k8s.io/api/storage/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/controllers/persistentvolumeclaim/provisioning/ownclass"
	"github.com/stowage-dev/stowage/controllers/persistentvolumeclaim/step"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/patch"
	"github.com/stowage-dev/stowage/internal/provisioned"
	"github.com/stowage-dev/stowage/internal/wake"
	"github.com/stowage-dev/stowage/internal/wrap"
)

// classOf identifies a class.
func classOf(class *storagev1.StorageClass) provisioned.Class {
	return provisioned.Class{Name: class.Name, UID: class.UID}
}

// isOfAnotherClass reports whether a pending call has the parameters of another class. A call for a cloud that records no class has
// none: the class was created again since, with some.
func isOfAnotherClass(operation provisioned.Intent, class *storagev1.StorageClass, object *stowagev1alpha1.StorageBackend) bool {
	if operation.Class == nil {
		return ownclass.Needs(class, object)
	}
	return *operation.Class != classOf(class)
}

// ensureClassKept adds a finalizer to the class of a claim before storage is called that needs the
// class, and before the operation is recorded. Only a repeat of the call, with the parameters of the
// class, finds what the call made. The cache only saves live reads.
func (r *Provisioner) ensureClassKept(ctx context.Context, scope *step.Scope, object *stowagev1alpha1.StorageBackend) (*step.Wait, error) {
	if !needsClass(scope.Class, object) || controllerutil.ContainsFinalizer(scope.Class, stowagev1alpha1.ProvisioningFinalizer) {
		return nil, nil
	}
	class, err := r.liveClass(ctx, scope.Class)
	switch {
	case err != nil:
		return nil, err
	case class == nil:
		return &step.Wait{After: wake.AfterContention}, nil
	case controllerutil.ContainsFinalizer(class, stowagev1alpha1.ProvisioningFinalizer):
		return nil, nil
	case !class.DeletionTimestamp.IsZero():
		return waitForBackend(errDeletedClass(class)), nil
	}
	before := class.DeepCopy()
	controllerutil.AddFinalizer(class, stowagev1alpha1.ProvisioningFinalizer)
	err = r.client.Patch(ctx, class, patch.Fenced(before))
	return nil, wrap.Error(err, "keeping StorageClass %s", class.Name)
}

// awaitClassKept reads the class again, live, after the claim has the pending operation. The
// reconciler that removes the finalizer reads in the other order, so one of the two sees the other.
// Began is true if this pass recorded the operation: then no call was made for it.
func (r *Provisioner) awaitClassKept(ctx context.Context, scope *step.Scope, object *stowagev1alpha1.StorageBackend, began bool) (*step.Wait, error) {
	if !needsClass(scope.Class, object) {
		return nil, nil
	}
	class, err := r.liveClass(ctx, scope.Class)
	switch {
	case err != nil:
		return nil, err
	case class == nil || !controllerutil.ContainsFinalizer(class, stowagev1alpha1.ProvisioningFinalizer):
		return &step.Wait{After: wake.AfterContention}, r.forgetUncalled(ctx, scope, began)
	case began && !class.DeletionTimestamp.IsZero():
		// The finalizer may be about to go: the claims were listed before this operation began.
		return waitForBackend(errDeletedClass(class)), r.forgetUncalled(ctx, scope, began)
	}
	return nil, nil
}

// liveClass reads a class, live. It returns nil if the cache shows an earlier one.
func (r *Provisioner) liveClass(ctx context.Context, cached *storagev1.StorageClass) (*storagev1.StorageClass, error) {
	class := &storagev1.StorageClass{}
	err := r.live.Get(ctx, client.ObjectKeyFromObject(cached), class)
	switch {
	case client.IgnoreNotFound(err) != nil:
		return nil, fmt.Errorf("reading StorageClass %s: %w", cached.Name, err)
	case err == nil && class.UID == cached.UID:
		return class, nil
	default:
		return nil, nil
	}
}

// forgetUncalled removes a pending operation for which no backend was called: without its class, or
// its backend, it could not be undone.
func (r *Provisioner) forgetUncalled(ctx context.Context, scope *step.Scope, began bool) error {
	if !began {
		return nil
	}
	before := scope.Claim.DeepCopy()
	provisioned.ClearIntent(scope.Claim)
	err := r.client.Patch(ctx, scope.Claim, patch.Fenced(before))
	return wrap.Error(err, "ending the operation of claim %s/%s", scope.Claim.Namespace, scope.Claim.Name)
}

func errDeletedClass(class *storagev1.StorageClass) error {
	return backend.Invalid.Errorf("StorageClass %s is being deleted: use another class", class.Name)
}
