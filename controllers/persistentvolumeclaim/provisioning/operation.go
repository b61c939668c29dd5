package provisioning

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/controllers/persistentvolumeclaim/attributes"
	"github.com/stowage-dev/stowage/controllers/persistentvolumeclaim/provisioning/owncall"
	"github.com/stowage-dev/stowage/controllers/persistentvolumeclaim/provisioning/ownclass"
	"github.com/stowage-dev/stowage/controllers/persistentvolumeclaim/step"
	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/bindable"
	"github.com/stowage-dev/stowage/internal/binder"
	"github.com/stowage-dev/stowage/internal/event"
	"github.com/stowage-dev/stowage/internal/patch"
	"github.com/stowage-dev/stowage/internal/provisioned"
	"github.com/stowage-dev/stowage/internal/storageclass"
	"github.com/stowage-dev/stowage/internal/uses"
	"github.com/stowage-dev/stowage/internal/wake"
	"github.com/stowage-dev/stowage/internal/wrap"
)

// isCurrent reports, from a live read, whether a claim still has the pending operation that
// the cache shows. One that was undone since must not begin again, under an id that no
// cleanup looks for any more.
func (r *Provisioner) isCurrent(ctx context.Context, claim *corev1.PersistentVolumeClaim) (bool, error) {
	current := &corev1.PersistentVolumeClaim{}
	err := r.live.Get(ctx, client.ObjectKeyFromObject(claim), current)
	if err != nil {
		return false, wrap.Error(client.IgnoreNotFound(err), "reading claim %s/%s", claim.Namespace, claim.Name)
	}
	return controllerutil.ContainsFinalizer(current, stowagev1alpha1.ProvisioningFinalizer) && owncall.PendingOf(current) == owncall.PendingOf(claim), nil
}

// ensureOperation records the pending operation before the backend is called: from here on the
// claim cannot be deleted without a cleanup of its storage.
func (r *Provisioner) ensureOperation(
	ctx context.Context, scope *step.Scope, object *stowagev1alpha1.StorageBackend, request backend.Request,
) error {
	claim := scope.Claim
	before := claim.DeepCopy()
	operation := provisioned.Intent{
		Backend: object.Name, Node: NameOf(scope.Request.Node), Topologies: scope.Class.AllowedTopologies, Attempt: provisioned.AttemptOf(claim),
		Attributes: attributes.ClassOf(request),
	}
	if needsClass(scope.Class, object) {
		class := classOf(scope.Class)
		operation.Class = &class
	}
	if object.Spec.CSI != nil {
		operation.Settings, operation.Records = settingsOf(object), isRecorded(claim)
	}
	text, err := json.Marshal(operation)
	if err != nil {
		return fmt.Errorf("recording the pending operation of claim %s/%s: %w", claim.Namespace, claim.Name, err)
	}
	changed := controllerutil.AddFinalizer(claim, stowagev1alpha1.ProvisioningFinalizer)
	if claim.Annotations[stowagev1alpha1.ProvisioningAnnotation] != string(text) {
		metav1.SetMetaDataAnnotation(&claim.ObjectMeta, stowagev1alpha1.ProvisioningAnnotation, string(text))
		changed = true
	}
	if changed = setProvisioner(claim, scope.Class) || changed; !changed {
		return nil
	}
	err = r.client.Patch(ctx, claim, patch.Fenced(before))
	if err != nil {
		return fmt.Errorf("recording the pending operation of claim %s/%s: %w", claim.Namespace, claim.Name, err)
	}
	return r.binder.ReportUnfit(ctx, scope, true)
}

// isRecorded reports whether this version began a claim's pending operation, or is about to.
func isRecorded(claim *corev1.PersistentVolumeClaim) bool {
	before, err := provisioned.IntentOf(claim)
	return !controllerutil.ContainsFinalizer(claim, stowagev1alpha1.ProvisioningFinalizer) || err == nil && before.Records
}

// SettleProvisioning ends a pending operation. If a PersistentVolume records the storage,
// there is nothing to do; else it removes what the backend may have created.
func (r *Provisioner) SettleProvisioning(ctx context.Context, scope *step.Scope) (*step.Wait, error) {
	claim := scope.Claim
	if !controllerutil.ContainsFinalizer(claim, stowagev1alpha1.ProvisioningFinalizer) {
		return nil, nil
	}
	// Read live: with a stale cache, a new PersistentVolume would lose its storage.
	recorded := &corev1.PersistentVolume{}
	err := r.live.Get(ctx, client.ObjectKey{Name: provisioned.VolumeID(claim)}, recorded)
	if err == nil {
		return nil, nil
	}
	if !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("reading volume %s: %w", provisioned.VolumeID(claim), err)
	}
	return r.undo(ctx, claim)
}

func (r *Provisioner) undo(ctx context.Context, claim *corev1.PersistentVolumeClaim) (*step.Wait, error) {
	name, err := r.backendOfOperation(ctx, claim)
	if err != nil {
		return waitForCleanup(err), nil
	}
	object := &stowagev1alpha1.StorageBackend{}
	if err := r.client.Get(ctx, client.ObjectKey{Name: name}, object); err != nil {
		return waitForCleanup(fmt.Errorf("reading StorageBackend %q: %w", name, err)), nil
	}
	opened, err := r.open(claim, object)
	switch {
	case err != nil:
	case object.Spec.CSI != nil:
		err = r.undoByRepeat(ctx, claim, object, opened)
	default:
		err = r.deleteUnrecorded(ctx, claim, opened)
	}
	if err != nil {
		return waitForCleanup(err), nil
	}
	return nil, nil
}

// deleteUnrecorded removes what a backend may have created for a claim. A call with an unknown
// outcome may still take effect after a deletion that found nothing. So the call is repeated
// until its outcome is known, and then undone.
func (r *Provisioner) deleteUnrecorded(ctx context.Context, claim *corev1.PersistentVolumeClaim, opened backend.Backend) error {
	operation, err := provisioned.IntentOf(claim)
	if err != nil || !operation.Undoing {
		if err := r.makeFinal(ctx, claim, operation, opened); err != nil {
			return err
		}
		operation.Undoing = true
		if err := r.writeOperation(ctx, claim, operation); err != nil {
			return err
		}
	}
	return opened.Delete(ctx, provisioned.VolumeID(claim))
}

// makeFinal repeats the call that may have been made for a claim until nothing of it is in
// flight any more.
func (r *Provisioner) makeFinal(ctx context.Context, claim *corev1.PersistentVolumeClaim, operation provisioned.Intent, opened backend.Backend) error {
	current, err := r.isCurrent(ctx, claim)
	switch {
	case err != nil:
		return err
	case !current:
		return backend.InProgress.Errorf("the claim has changed: it is read again")
	}
	request := r.requestOf(ctx, claim, operation)
	if err := ownclass.FillAgain(ctx, r.live, claim, operation, &request); err != nil {
		return err
	}
	if request.Attributes, err = attributes.Recorded(ctx, r.live, operation.Attributes); err != nil {
		return err
	}
	_, err = opened.Provision(ctx, request)
	// Unavailable is only about the repeat: the call before it may still take effect.
	if err != nil && (backend.KindOf(err) == "" || backend.Unfinished(err) || errors.Is(err, backend.Unavailable)) {
		return fmt.Errorf("making sure that nothing is still being made before it is removed: %w", err)
	}
	return nil
}

// requestOf returns the request of a pending operation, for a volume that is not wanted any more.
func (r *Provisioner) requestOf(ctx context.Context, claim *corev1.PersistentVolumeClaim, operation provisioned.Intent) backend.Request {
	request := RequestFrom(claim)
	request.Unwanted, request.Topologies = true, operation.Topologies
	step.FillPlacement(&request, claim)
	if operation.Node != "" {
		node := &corev1.Node{}
		if err := r.client.Get(ctx, client.ObjectKey{Name: operation.Node}, node); err == nil {
			request.Node = node
		}
	}
	return request
}

// writeOperation updates the annotation of a claim with a pending operation, if it differs.
func (r *Provisioner) writeOperation(ctx context.Context, claim *corev1.PersistentVolumeClaim, operation provisioned.Intent) error {
	text, err := json.Marshal(operation)
	if err != nil {
		return fmt.Errorf("recording the pending operation of claim %s/%s: %w", claim.Namespace, claim.Name, err)
	}
	if claim.Annotations[stowagev1alpha1.ProvisioningAnnotation] == string(text) {
		return nil
	}
	before := claim.DeepCopy()
	metav1.SetMetaDataAnnotation(&claim.ObjectMeta, stowagev1alpha1.ProvisioningAnnotation, string(text))
	err = r.client.Patch(ctx, claim, patch.Fenced(before))
	return wrap.Error(err, "recording the pending operation of claim %s/%s", claim.Namespace, claim.Name)
}

// startOver undoes a pending operation, so that the claim can get another volume.
func (r *Provisioner) startOver(ctx context.Context, claim *corev1.PersistentVolumeClaim) (*step.Wait, error) {
	if waiting, err := r.undo(ctx, claim); waiting != nil || err != nil {
		return waiting, err
	}
	return nil, r.beginAnew(ctx, claim)
}

// backendOfOperation returns the backend that the annotation names or, if a person removed the
// annotation, the one that the claim's class names.
func (r *Provisioner) backendOfOperation(ctx context.Context, claim *corev1.PersistentVolumeClaim) (string, error) {
	operation, err := provisioned.IntentOf(claim)
	if err == nil && operation.Backend != "" {
		return operation.Backend, nil
	}
	class := &storagev1.StorageClass{}
	if missing := r.client.Get(ctx, client.ObjectKey{Name: storageclass.Of(claim)}, class); missing != nil {
		return "", errors.Join(err, missing)
	}
	if backend.IsOurs(class.Provisioner) {
		return class.Parameters[stowagev1alpha1.BackendParameter], nil
	}
	return class.Provisioner, nil
}

// RemoveFinalizers releases the claim, or ends its pending operation. It is the last write.
func (r *Provisioner) RemoveFinalizers(ctx context.Context, scope *step.Scope) (*step.Wait, error) {
	claim := scope.Claim
	if claim.DeletionTimestamp.IsZero() && !provisioned.HasIntent(claim) {
		return nil, nil
	}
	if err := step.ForgetRecords(ctx, r.client, claim); err != nil {
		return nil, err
	}
	before := claim.DeepCopy()
	changed := provisioned.ClearIntent(claim)
	if !claim.DeletionTimestamp.IsZero() && r.scope == reconciler.ClusterScope {
		changed = controllerutil.RemoveFinalizer(claim, uses.ClaimProtection) || changed
	}
	if !changed {
		return nil, nil
	}
	err := r.client.Patch(ctx, claim, patch.Fenced(before))
	return nil, wrap.Error(client.IgnoreNotFound(err), "removing the finalizers of claim %s/%s", claim.Namespace, claim.Name)
}

// waitForCleanup keeps the claim until the backend reports that nothing is left.
func waitForCleanup(err error) *step.Wait {
	waiting := &step.Wait{Reason: bindable.ReasonProvisioningCleanup, Message: err.Error(), After: wake.WithoutAnswer}
	if !backend.Unfinished(err) {
		waiting.Event, waiting.Warning, waiting.Retry = event.ProvisioningCleanupFailed, true, err
	}
	return waiting
}

// findRecorded looks, live, for the PersistentVolume that was created for the claim before.
// One that is being deleted cannot be bound any more.
func (r *Provisioner) findRecorded(ctx context.Context, scope *step.Scope) (*step.Wait, error) {
	recorded := &corev1.PersistentVolume{}
	err := r.live.Get(ctx, client.ObjectKey{Name: provisioned.VolumeID(scope.Claim)}, recorded)
	switch {
	case err != nil:
		return nil, wrap.Error(client.IgnoreNotFound(err), "reading volume %s", provisioned.VolumeID(scope.Claim))
	case !recorded.DeletionTimestamp.IsZero():
		// Its storage is removed with that PersistentVolume.
		return waitForOldVolume(recorded, scope.Claim), r.beginAnew(ctx, scope.Claim)
	case binder.TiedTo(recorded, scope.Claim):
		scope.Volume = recorded
	}
	return nil, nil
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
	if provisioned.IsUncalledCopy(claim, operation) {
		return nil
	}
	if err := r.refusals.check(claim, operation, object); err != nil {
		return err
	}
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
	if err := attributes.FillAgain(ctx, r.live, claim, &request, object); err != nil {
		return err
	}
	if err := r.sources.Fill(ctx, claim, object, &request); err != nil {
		return err
	}
	operation.Undoing, operation.Settings = true, settingsOf(object)
	if err := r.writeOperation(ctx, claim, operation); err != nil {
		return err
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
