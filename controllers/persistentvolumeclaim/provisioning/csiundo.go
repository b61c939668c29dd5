package provisioning

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/controllers/persistentvolumeclaim/step"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/patch"
	"github.com/stowage-dev/stowage/internal/provisioned"
	"github.com/stowage-dev/stowage/internal/storageclass"
	"github.com/stowage-dev/stowage/internal/wake"
	"github.com/stowage-dev/stowage/internal/wrap"
)

// classOf identifies a class.
func classOf(class *storagev1.StorageClass) provisioned.Class {
	return provisioned.Class{Name: class.Name, UID: class.UID}
}

// ensureClassKept adds a finalizer to the class of a claim before a CSI driver is called, and
// before the operation is recorded. Only a repeat of the call, with the parameters of the class,
// finds what the call made. The cache only saves live reads.
func (r *Provisioner) ensureClassKept(ctx context.Context, scope *step.Scope, object *stowagev1alpha1.StorageBackend) (*step.Wait, error) {
	if object.Spec.CSI == nil || controllerutil.ContainsFinalizer(scope.Class, stowagev1alpha1.ProvisioningFinalizer) {
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
	if object.Spec.CSI == nil {
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

// forgetUncalled removes a pending operation for which no driver was called: without its class it
// could not be undone.
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

// undoByRepeat removes what a CSI driver may have made for a claim. The driver finds it by the same
// call, which may also make it again: so each pass confirms first, live, that the operation is
// still pending. After a crash in between, the claim still says so.
func (r *Provisioner) undoByRepeat(ctx context.Context, claim *corev1.PersistentVolumeClaim, object *stowagev1alpha1.StorageBackend, opened backend.Backend) error {
	current, err := r.isCurrent(ctx, claim)
	switch {
	case err != nil:
		return err
	case !current:
		return backend.InProgress.Errorf("the claim has changed: it is read again")
	}
	// One that can't be read is no hint: then the claim's class has the parameters.
	operation, _ := provisioned.IntentOf(claim)
	class, err := r.classOfOperation(ctx, claim, operation, object)
	if err != nil {
		return err
	}
	request := r.requestOf(ctx, claim, operation)
	// Users can write the annotation. A driver that refuses other topologies than those of the first
	// call would leave what that call made.
	request.Topologies = class.AllowedTopologies
	if err := r.fillFromClass(&request, class, object); err != nil {
		return err
	}
	if err := r.fillFrom(ctx, &step.Scope{Claim: claim}, object, &request); err != nil {
		return err
	}
	if !operation.Undoing {
		operation.Undoing = true
		if err := r.writeOperation(ctx, claim, operation); err != nil {
			return err
		}
	}
	return backend.Undo(ctx, opened, request)
}

// classOfOperation reads, live, the class with the parameters of a pending operation. A class that
// was created again under the name may have others.
func (r *Provisioner) classOfOperation(
	ctx context.Context, claim *corev1.PersistentVolumeClaim, operation provisioned.Intent, object *stowagev1alpha1.StorageBackend,
) (*storagev1.StorageClass, error) {
	name, recorded := storageclass.Of(claim), operation.Class
	if recorded != nil && recorded.Name != name {
		// A user wrote the annotation. With another class's parameters the driver finds nothing.
		recorded = nil
	}
	class := &storagev1.StorageClass{}
	err := r.live.Get(ctx, client.ObjectKey{Name: name}, class)
	switch {
	case client.IgnoreNotFound(err) != nil:
		return nil, fmt.Errorf("reading StorageClass %s: %w", name, err)
	case err != nil || class.Provisioner != object.Name || recorded != nil && class.UID != recorded.UID:
		return nil, backend.Invalid.Errorf("StorageClass %.200q, with whose parameters driver %s may have made volume %s, is gone: "+
			"remove that volume from the storage by hand, if it is there, and then the finalizer %s from the claim",
			name, object.Name, provisioned.VolumeID(claim), stowagev1alpha1.ProvisioningFinalizer)
	}
	return class, nil
}
