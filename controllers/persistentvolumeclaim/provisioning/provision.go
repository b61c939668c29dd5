// Package provisioning provisions volumes for claims from backends. The pending operation is
// on the claim before a backend is called. It is removed after a PersistentVolume records the
// storage, or after the backend removed it. If a node cannot have the volume, the scheduler
// chooses another.
package provisioning

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/component-helpers/storage/volume"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/controllers/persistentvolumeclaim/attributes"
	"github.com/stowage-dev/stowage/controllers/persistentvolumeclaim/step"
	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/bindable"
	"github.com/stowage-dev/stowage/internal/binder"
	"github.com/stowage-dev/stowage/internal/provisioned"
	"github.com/stowage-dev/stowage/internal/uses"
	"github.com/stowage-dev/stowage/internal/wake"
	"github.com/stowage-dev/stowage/internal/wrap"
)

// AwaitProvisionRequest waits, in scope=classes, until kube-controller-manager requests the
// claim's volume from a driver that Stowage serves. That may be once there is a pod: what is
// impossible has its event before. A volume whose place is known needs no pod.
func (r *Provisioner) AwaitProvisionRequest(ctx context.Context, scope *step.Scope) (*step.Wait, error) {
	if served, err := r.drivers.Serves(ctx, scope.Claim.Annotations[volume.AnnStorageProvisioner]); served || scope.Placed || err != nil {
		return nil, err
	}
	if impossible := r.checkPossible(ctx, scope); impossible != nil {
		return impossible, nil
	}
	return &step.Wait{}, nil
}

// FindProvisionedVolume finds, in scope=classes, the volume that was provisioned for the claim and
// that kube-controller-manager has yet to bind.
func (r *Provisioner) FindProvisionedVolume(ctx context.Context, scope *step.Scope) (*step.Wait, error) {
	pv := &corev1.PersistentVolume{}
	err := r.client.Get(ctx, client.ObjectKey{Name: provisioned.VolumeID(scope.Claim)}, pv)
	if err == nil && binder.TiedTo(pv, scope.Claim) {
		scope.Volume = pv
	}
	return nil, wrap.Error(client.IgnoreNotFound(err), "reading volume %s", provisioned.VolumeID(scope.Claim))
}

// Provision provisions a volume for a claim that no volume fits, or leaves that to a foreign
// provisioner.
func (r *Provisioner) Provision(ctx context.Context, scope *step.Scope) (*step.Wait, error) {
	switch {
	case scope.Volume != nil:
		return nil, nil
	case scope.Request.Delayed:
		return r.waitForPlacement(ctx, scope)
	case r.scope == reconciler.ClassesScope && !scope.Placed && (scope.Class == nil || scope.Class.Provisioner != scope.Claim.Annotations[volume.AnnStorageProvisioner]):
		// The class was deleted, or recreated with another provisioner:
		// kube-controller-manager has to request the volume again.
		return &step.Wait{}, nil
	case scope.Class == nil || scope.Class.Provisioner == NoProvisioner:
		return r.waitUnmatched(scope), nil
	case isGone(scope.Class):
		return waitForGoneProvisioner(scope.Class), nil
	case populated(scope.Claim):
		return waitForPopulator(scope.Claim), r.markProvisioner(ctx, scope)
	}
	served, err := r.drivers.Serves(ctx, scope.Class.Provisioner)
	switch {
	case err != nil:
		return nil, err
	case !served:
		return waitForForeignProvisioner(provisionerOf(scope.Class)), r.markProvisioner(ctx, scope)
	}
	object, request, err := r.prepare(ctx, scope)
	if err != nil {
		return r.leaveForbiddenNode(ctx, scope, err)
	}
	return r.provisionFrom(ctx, scope, object, request)
}

// prepare finds the claim's backend and builds the request to it.
func (r *Provisioner) prepare(ctx context.Context, scope *step.Scope) (*stowagev1alpha1.StorageBackend, backend.Request, error) {
	request := RequestFrom(scope.Claim)
	request.Node, request.Topologies = scope.Request.Node, scope.Class.AllowedTopologies
	object, err := r.backendOfClass(ctx, scope.Class)
	if err != nil {
		return nil, request, err
	}
	if err := refuse(scope, object); err != nil {
		return nil, request, err
	}
	if err := r.fillFromClass(&request, scope.Class, object); err != nil {
		return nil, request, err
	}
	if err := attributes.Fill(ctx, r.live, scope.Claim, &request, object); err != nil {
		return nil, request, err
	}
	err = r.sources.Fill(ctx, scope.Claim, object, &request)
	return object, request, err
}

// backendOfClass reads the StorageBackend that a class names.
func (r *Provisioner) backendOfClass(ctx context.Context, class *storagev1.StorageClass) (*stowagev1alpha1.StorageBackend, error) {
	name, err := backendNameOf(class)
	if err != nil {
		return nil, fmt.Errorf("StorageClass %s: %w", class.Name, err)
	}
	object := &stowagev1alpha1.StorageBackend{}
	if err := r.client.Get(ctx, client.ObjectKey{Name: name}, object); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, backend.Invalid.Errorf("StorageClass %s names the StorageBackend %q, which does not exist: "+
				"create it, or use another class", class.Name, name)
		}
		return nil, fmt.Errorf("reading StorageBackend %s: %w", name, err)
	}
	return object, nil
}

// provisionFrom calls the backend to create the volume. The pending operation is recorded first, so
// that no crash leaves unrecorded storage.
func (r *Provisioner) provisionFrom(
	ctx context.Context, scope *step.Scope, object *stowagev1alpha1.StorageBackend, request backend.Request,
) (*step.Wait, error) {
	begins := r.calls.Now()
	opened, err := r.openChecked(scope.Claim, object, request)
	if err != nil {
		return waitForBackend(err), nil
	}
	waiting, err := r.resume(ctx, scope, object, request)
	if waiting != nil || err != nil || scope.Volume != nil {
		return waiting, err
	}
	if waiting, err := r.ensureClassKept(ctx, scope, object); waiting != nil || err != nil {
		return waiting, err
	}
	request.ID = provisioned.VolumeID(scope.Claim)
	began := !provisioned.HasIntent(scope.Claim)
	if err := r.ensureOperation(ctx, scope, object, request); err != nil {
		return nil, err
	}
	if waiting, err := r.awaitUsable(ctx, scope, object, began); waiting != nil || err != nil {
		return waiting, err
	}
	if waiting, err := r.awaitClassKept(ctx, scope, object, began); waiting != nil || err != nil {
		return waiting, err
	}
	if err := r.record(ctx, scope.Claim, opened, &request, began); err != nil {
		return waitForRecord(err)
	}
	r.refusals.begin(scope.Claim)
	made, err := opened.Provision(ctx, request)
	if err != nil {
		r.refusals.end(scope.Claim, object, err)
		r.calls.Note(scope.Claim, begins, err)
		return r.retryElsewhere(ctx, scope, err)
	}
	return r.ensureVolume(ctx, scope, r.newVolume(scope, object, request, made))
}

// waitForRecord waits for what keeps a record from being written. An error of the API server is retried.
func waitForRecord(err error) (*step.Wait, error) {
	if backend.KindOf(err) == "" {
		return nil, err
	}
	return waitForBackend(err), nil
}

// record records what is copied, and where the backend may make the volume. A record of places from before
// this operation began is void.
func (r *Provisioner) record(ctx context.Context, claim *corev1.PersistentVolumeClaim, opened backend.Backend, request *backend.Request, began bool) error {
	if err := r.sources.EnsureRecorded(ctx, claim, *request); err != nil {
		return err
	}
	if !began && step.FillPlacement(request, claim) {
		return nil
	}
	return step.EnsurePlacement(ctx, r.client, claim, opened, request)
}

// openChecked opens a backend that can make what is requested.
func (r *Provisioner) openChecked(claim *corev1.PersistentVolumeClaim, object *stowagev1alpha1.StorageBackend, request backend.Request) (backend.Backend, error) {
	opened, err := r.open(claim, object)
	if err != nil {
		return nil, err
	}
	if object.Spec.CSI != nil {
		// Only the driver knows which file systems its nodes can make.
		request.FSType = ""
	}
	return opened, wrap.Error(opened.Capabilities().Check(request), "StorageBackend %s", object.Name)
}

// checkPossible returns a Wait for a claim that waits for its pod, and whose volume its backend can
// never make. Without it, users would learn that only once a pod exists.
func (r *Provisioner) checkPossible(ctx context.Context, scope *step.Scope) *step.Wait {
	if scope.Class == nil || populated(scope.Claim) {
		return nil
	}
	if served, err := r.drivers.Serves(ctx, scope.Class.Provisioner); !served || err != nil {
		return nil
	}
	object, request, err := r.prepare(ctx, scope)
	if err == nil {
		_, err = r.openChecked(scope.Claim, object, request)
	}
	if backend.KindOf(err) != backend.Invalid {
		return nil
	}
	return waitForBackend(err)
}

// awaitUsable reads the backend again, live, after the pending operation was recorded. The
// deletion of a backend looks for pending operations. Each side writes before it reads, so one
// of them sees the other. Began is true if this pass recorded the operation.
func (r *Provisioner) awaitUsable(ctx context.Context, scope *step.Scope, object *stowagev1alpha1.StorageBackend, began bool) (*step.Wait, error) {
	current, err := r.shared.Backends.Get(ctx, object.Name)
	switch {
	case client.IgnoreNotFound(err) != nil:
		return nil, fmt.Errorf("reading StorageBackend %s: %w", object.Name, err)
	case apierrors.IsNotFound(err) || current.UID != object.UID || !current.DeletionTimestamp.IsZero() && (began || object.Spec.CSI == nil):
		waiting := waitForBackend(backend.Invalid.Errorf("StorageBackend %s is being deleted: use another class", object.Name))
		return waiting, r.forgetUncalled(ctx, scope, began)
	case !controllerutil.ContainsFinalizer(current, stowagev1alpha1.BackendInUseFinalizer):
		return &step.Wait{Reason: bindable.ReasonProvisioning, Message: "waiting for StorageBackend " + object.Name + " to be accepted", After: wake.AfterContention}, nil
	}
	return nil, nil
}

// ensureVolume creates the PersistentVolume, already tied to the claim. After a crash before
// the claim's own write, the next pass finds it.
func (r *Provisioner) ensureVolume(ctx context.Context, scope *step.Scope, pv *corev1.PersistentVolume) (*step.Wait, error) {
	if r.scope == reconciler.ClusterScope {
		// Kubernetes' admission plug-in does the same: the write that binds has nothing to
		// add.
		controllerutil.AddFinalizer(pv, uses.VolumeProtection)
	}
	err := r.client.Create(ctx, pv)
	if apierrors.IsAlreadyExists(err) {
		if waiting, err := r.findRecorded(ctx, scope); waiting != nil || err != nil || scope.Volume != nil {
			return waiting, err
		}
		waiting := waitForBackend(backend.Conflict.Errorf("a volume %s exists and is not this claim's: delete it", pv.Name))
		// Its deletion wakes the claim that it names.
		waiting.After = wake.WithoutAnswer
		return waiting, nil
	}
	if err != nil {
		return nil, fmt.Errorf("creating volume %s: %w", pv.Name, err)
	}
	if r.scope == reconciler.ClassesScope {
		// In scope=cluster the write that binds the claim records the event.
		r.binder.RecordProvisioned(scope.Claim, pv)
	}
	scope.Volume = pv
	return nil, nil
}

// resume checks, live, a claim for which a backend was called before, unless this process made that
// call. The cache of a new leader may show a deleted claim, a pending operation that was undone, or
// miss the PersistentVolume. If the class was recreated with another backend, the operation in the
// earlier backend is undone first.
func (r *Provisioner) resume(
	ctx context.Context, scope *step.Scope, object *stowagev1alpha1.StorageBackend, request backend.Request,
) (*step.Wait, error) {
	claim := scope.Claim
	if !controllerutil.ContainsFinalizer(claim, stowagev1alpha1.ProvisioningFinalizer) {
		return nil, nil
	}
	if !r.calls.Take(claim) {
		if current, err := r.isCurrent(ctx, claim); !current || err != nil {
			return &step.Wait{After: wake.AfterContention}, err
		}
		if waiting, err := r.findRecorded(ctx, scope); waiting != nil || err != nil || scope.Volume != nil {
			return waiting, err
		}
	}
	operation, err := provisioned.IntentOf(claim)
	if err != nil || operation.Backend == "" {
		return nil, nil //nolint:nilerr // an annotation that can't be read is no hint
	}
	return r.resumeOperation(ctx, scope, object, request, operation)
}

// resumeOperation goes on with a pending operation, unless that is undone first.
func (r *Provisioner) resumeOperation(
	ctx context.Context, scope *step.Scope, object *stowagev1alpha1.StorageBackend, request backend.Request, operation provisioned.Intent,
) (*step.Wait, error) {
	claim := scope.Claim
	switch {
	case operation.Leaving != "":
		return r.leaveNode(ctx, claim, operation)
	case step.IsPlacedElsewhere(claim, scope.Request.Node), operation.Undoing || operation.Backend != object.Name || isOfAnotherClass(operation, scope.Class, object),
		operation.Attributes != nil && !ptr.Equal(operation.Attributes, attributes.ClassOf(request)):
		return r.startOver(ctx, claim)
	}
	if err := r.refusals.check(claim, operation, object); err != nil {
		return waitForBackend(err), nil
	}
	return nil, nil
}
