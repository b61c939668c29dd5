// Package provisioning provisions volumes for claims from backends. The pending operation is
// on the claim before a backend is called. It is removed after a PersistentVolume records the
// storage, or after the backend removed it. If a node cannot have the volume, the scheduler
// chooses another.
package provisioning

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/component-helpers/storage/volume"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/controllers/persistentvolumeclaim/binding"
	"github.com/stowage-dev/stowage/controllers/persistentvolumeclaim/protection"
	"github.com/stowage-dev/stowage/controllers/persistentvolumeclaim/step"
	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/internal/attachintent"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/binder"
	"github.com/stowage-dev/stowage/internal/liveread"
	"github.com/stowage-dev/stowage/internal/migration"
	"github.com/stowage-dev/stowage/internal/provisioned"
	"github.com/stowage-dev/stowage/internal/uses"
	"github.com/stowage-dev/stowage/internal/wake"
	"github.com/stowage-dev/stowage/internal/wrap"
)

// Provisioner provisions volumes from backends, and removes storage of claims that do not need
// it any more.
type Provisioner struct {
	client client.Client
	live   client.Reader
	shared liveread.Reads
	scope  reconciler.Scope
	index  *binder.Index
	open   step.Open
	// untilRefresh returns the time until the claims of a class check again.
	untilRefresh func(class string) time.Duration
	binder       *binding.Binder
	protector    *protection.Protector
	events       events.EventRecorder
}

// Parts are the parts of a provisioner beside the dependencies of all reconcilers.
type Parts struct {
	// Index explains why no volume fits.
	Index *binder.Index
	// Open opens backends.
	Open step.Open
	// UntilRefresh returns the time until the claims of a class check again.
	UntilRefresh func(class string) time.Duration
	Binder       *binding.Binder
	Protector    *protection.Protector
}

// New makes a provisioner.
func New(deps reconciler.Dependencies, parts Parts) *Provisioner {
	return &Provisioner{
		client: deps.Client, live: deps.Live, shared: deps.Reads, scope: deps.Scope, index: parts.Index, open: parts.Open,
		untilRefresh: parts.UntilRefresh, binder: parts.Binder, protector: parts.Protector, events: deps.Events,
	}
}

// NoProvisioner is the provisioner of classes with handmade volumes.
const NoProvisioner = "kubernetes.io/no-provisioner"

// AwaitProvisionRequest waits, in scope=classes, until kube-controller-manager requests the
// claim's volume from one of Stowage's drivers.
func (r *Provisioner) AwaitProvisionRequest(_ context.Context, scope *step.Scope) (*step.Wait, error) {
	if !backend.IsOurs(scope.Claim.Annotations[volume.AnnStorageProvisioner]) {
		return &step.Wait{}, nil
	}
	return nil, nil
}

// FindMadeVolume finds, in scope=classes, the volume that was provisioned for the claim and
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
		return r.waitForPlacement(ctx, scope.Claim)
	case r.scope == reconciler.ClassesScope && (scope.Class == nil || scope.Class.Provisioner != scope.Claim.Annotations[volume.AnnStorageProvisioner]):
		// The class was deleted, or recreated with another provisioner:
		// kube-controller-manager has to request the volume again.
		return &step.Wait{}, nil
	case scope.Class == nil || scope.Class.Provisioner == NoProvisioner:
		return r.waitUnmatched(scope), nil
	case isGone(scope.Class):
		return waitForGoneProvisioner(scope.Class), nil
	case populated(scope.Claim):
		return waitForPopulator(scope.Claim), r.markProvisioner(ctx, scope)
	case !backend.IsOurs(scope.Class.Provisioner):
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
	parameters, err := backend.ParseParameters(scope.Class.Parameters)
	if err != nil {
		return nil, request, fmt.Errorf("StorageClass %s: %w", scope.Class.Name, err)
	}
	if request.VolumeMode != corev1.PersistentVolumeBlock {
		request.FSType = parameters.FSType
	}
	object := &stowagev1alpha1.StorageBackend{}
	if err := r.client.Get(ctx, client.ObjectKey{Name: parameters.Backend}, object); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, request, backend.Invalid.Errorf("StorageClass %s names the StorageBackend %q, which does not exist: "+
				"create it, or use another class", scope.Class.Name, parameters.Backend)
		}
		return nil, request, fmt.Errorf("reading StorageBackend %s: %w", parameters.Backend, err)
	}
	if err := refuse(scope, object); err != nil {
		return nil, request, err
	}
	err = r.fillFrom(ctx, scope, object, &request)
	return object, request, err
}

// RequestFrom returns a claim's request to a backend, without a node. For a clone or a restore
// it has no details of the source.
func RequestFrom(claim *corev1.PersistentVolumeClaim) backend.Request {
	request := backend.Request{
		ID:          provisioned.VolumeID(claim),
		Claim:       stowagev1alpha1.ClaimReference{Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID},
		Labels:      claim.Labels,
		Annotations: ownersAnnotations(claim),
		Capacity:    claim.Spec.Resources.Requests[corev1.ResourceStorage],
		VolumeMode:  ptr.Deref(claim.Spec.VolumeMode, corev1.PersistentVolumeFilesystem),
		AccessModes: claim.Spec.AccessModes,
	}
	if provisioned.DataSource(claim) != nil {
		request.Source = &backend.Source{}
	}
	return request
}

// ownersAnnotations returns the annotations that the claim's owner wrote. Those of controllers
// must not reach a backend.
func ownersAnnotations(claim *corev1.PersistentVolumeClaim) map[string]string {
	kept := maps.Clone(claim.Annotations)
	maps.DeleteFunc(kept, func(key, _ string) bool {
		prefix, _, _ := strings.Cut(key, "/")
		return prefix == stowagev1alpha1.GroupVersion.Group || strings.HasSuffix(prefix, "kubernetes.io")
	})
	return kept
}

// refuse returns why a claim is refused before any backend is called: nothing may be created
// for it.
func refuse(scope *step.Scope, object *stowagev1alpha1.StorageBackend) error {
	claim := scope.Claim
	switch {
	case !object.DeletionTimestamp.IsZero():
		return backend.Invalid.Errorf("StorageBackend %s is being deleted: use another class", object.Name)
	case backend.DriverOf(object) != scope.Class.Provisioner:
		return backend.Invalid.Errorf("StorageClass %s has the provisioner %s, but StorageBackend %s is served by %s",
			scope.Class.Name, scope.Class.Provisioner, object.Name, backend.DriverOf(object))
	case scope.Request.Node != nil && !backend.Allows(scope.Class.AllowedTopologies, scope.Request.Node):
		return backend.WrongNode.Errorf("node %s is not within the allowedTopologies of StorageClass %s (%s): place the pod elsewhere, or use another class",
			scope.Request.Node.Name, scope.Class.Name, backend.Mismatch(scope.Class.AllowedTopologies, scope.Request.Node))
	case claim.Spec.Selector != nil:
		return backend.Invalid.Errorf("a claim with a selector gets no volume made for it: remove the selector, or create a volume that it selects")
	case ptr.Deref(claim.Spec.VolumeAttributesClassName, "") != "":
		return backend.Invalid.Errorf("StorageBackend %s knows no volumeAttributesClass: create the claim without one", object.Name)
	}
	return nil
}

// make calls the backend to create the volume. The pending operation is recorded first, so
// that no crash leaves unrecorded storage.
func (r *Provisioner) provisionFrom(
	ctx context.Context, scope *step.Scope, object *stowagev1alpha1.StorageBackend, request backend.Request,
) (*step.Wait, error) {
	opened, err := r.open(scope.Claim, object)
	if err == nil {
		err = opened.Capabilities().Check(request)
	}
	if err != nil {
		return waitForBackend(err), nil
	}
	waiting, err := r.resume(ctx, scope, object)
	if waiting != nil || err != nil || scope.Volume != nil {
		return waiting, err
	}
	request.ID = provisioned.VolumeID(scope.Claim)
	if err := r.ensureOperation(ctx, scope, object); err != nil {
		return nil, err
	}
	if waiting, err := r.awaitUsable(ctx, object); waiting != nil || err != nil {
		return waiting, err
	}
	made, err := opened.Provision(ctx, request)
	if err != nil {
		return r.retryElsewhere(ctx, scope, err)
	}
	return r.ensureVolume(ctx, scope, NewVolume(scope, object, request, made))
}

// awaitUsable reads the backend again, live, after the pending operation was recorded. The
// deletion of a backend looks for pending operations. Each side writes before it reads, so one
// of them sees the other.
func (r *Provisioner) awaitUsable(ctx context.Context, object *stowagev1alpha1.StorageBackend) (*step.Wait, error) {
	current, err := r.shared.Backends.Get(ctx, object.Name)
	switch {
	case client.IgnoreNotFound(err) != nil:
		return nil, fmt.Errorf("reading StorageBackend %s: %w", object.Name, err)
	case apierrors.IsNotFound(err) || current.UID != object.UID || !current.DeletionTimestamp.IsZero():
		return waitForBackend(backend.Invalid.Errorf("StorageBackend %s is being deleted: use another class", object.Name)), nil
	case !controllerutil.ContainsFinalizer(current, stowagev1alpha1.BackendInUseFinalizer):
		return &step.Wait{Reason: "Provisioning", Message: "waiting for StorageBackend " + object.Name + " to be accepted", After: wake.AfterContention}, nil
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

// NewVolume returns the PersistentVolume for storage that a backend made, tied to its claim.
func NewVolume(scope *step.Scope, object *stowagev1alpha1.StorageBackend, request backend.Request, made *backend.Volume) *corev1.PersistentVolume {
	claim, class := scope.Claim, scope.Class
	driver := backend.DriverOf(object)
	// A CSI source is immutable: what the deletion needs is safe there, even after class and
	// claim are gone.
	attributes := maps.Clone(made.Attributes)
	if attributes == nil {
		attributes = map[string]string{}
	}
	attributes[stowagev1alpha1.BackendAttribute] = object.Name
	pv := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{
			Name:        request.ID,
			Labels:      map[string]string{stowagev1alpha1.BackendLabel: object.Name},
			Annotations: map[string]string{volume.AnnDynamicallyProvisioned: driver},
		},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: made.Capacity},
			AccessModes:                   claim.Spec.AccessModes,
			VolumeMode:                    &request.VolumeMode,
			StorageClassName:              class.Name,
			PersistentVolumeReclaimPolicy: ptr.Deref(class.ReclaimPolicy, corev1.PersistentVolumeReclaimDelete),
			MountOptions:                  class.MountOptions,
			NodeAffinity:                  cmp.Or(made.NodeAffinity, backend.AffinityTo(class.AllowedTopologies)),
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
				Driver:           driver,
				VolumeHandle:     made.Handle,
				VolumeAttributes: attributes,
				FSType:           made.FSType,
			}},
		},
	}
	controllerutil.AddFinalizer(pv, stowagev1alpha1.ReclaimFinalizer)
	if attachintent.NeedsAttach(pv) {
		// Set from the start, the finalizer needs no write at the first attach.
		controllerutil.AddFinalizer(pv, attachintent.Finalizer(driver))
	}
	binder.BindVolume(pv, claim)
	return pv
}

// markProvisioner requests the claim's volume from a foreign provisioner.
func (r *Provisioner) markProvisioner(ctx context.Context, scope *step.Scope) error {
	before := scope.Claim.DeepCopy()
	if !setProvisioner(scope.Claim, scope.Class) {
		return nil
	}
	err := r.client.Patch(ctx, scope.Claim, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	return wrap.Error(err, "naming the provisioner of claim %s/%s", scope.Claim.Namespace, scope.Claim.Name)
}

// setProvisioner sets, in memory, the annotations that name the provisioner, the older one for
// programs that read only that, and reports whether they changed. If the newer one is right,
// both were written before, or a person chose to omit the older one.
func setProvisioner(claim *corev1.PersistentVolumeClaim, class *storagev1.StorageClass) bool {
	provisioner := provisionerOf(class)
	if claim.Annotations[volume.AnnStorageProvisioner] == provisioner {
		return false
	}
	metav1.SetMetaDataAnnotation(&claim.ObjectMeta, volume.AnnStorageProvisioner, provisioner)
	metav1.SetMetaDataAnnotation(&claim.ObjectMeta, volume.AnnBetaStorageProvisioner, provisioner)
	migration.MarkClaim(claim)
	return true
}
