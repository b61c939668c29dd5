// Package storagebackend is the reconciler of StorageBackends. It probes them, adds up their
// capacity, keeps the StorageClass of their spec, and releases a deleted backend once nothing
// needs it. It writes the backend's status and the class. It never creates or deletes volumes;
// package audit compares what backends hold with the cluster.
package storagebackend

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/effect"
	"github.com/stowage-dev/stowage/internal/index"
	"github.com/stowage-dev/stowage/internal/opener"
	"github.com/stowage-dev/stowage/internal/patch"
	"github.com/stowage-dev/stowage/internal/wake"
	"github.com/stowage-dev/stowage/internal/wrap"
)

// probes is the number of concurrent reconciles: a hanging storage must not block the others.
const probes = 8

// Reconciler sets in a StorageBackend's status whether it can be used, keeps its StorageClass,
// and keeps the object while volumes need it.
type Reconciler struct {
	client   client.Client
	storage  *opener.Opener
	events   events.EventRecorder
	classes  classes
	deletion deletion
	// snapshots says whether VolumeSnapshots are served.
	snapshots Missing
}

// New makes the reconciler. Snapshots says whether VolumeSnapshots are served.
func New(deps reconciler.Dependencies, snapshots Missing) *Reconciler {
	classes := classes{client: deps.Client, events: deps.Events}
	return &Reconciler{
		client: deps.Client, storage: deps.Storage, events: deps.Events, classes: classes, snapshots: snapshots,
		deletion: deletion{client: deps.Client, live: deps.Live, classes: classes},
	}
}

// +kubebuilder:rbac:groups=stowage.dev,resources=storagebackends,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=stowage.dev,resources=storagebackends/status,verbs=patch
// +kubebuilder:rbac:groups=stowage.dev,resources=storagebackends/finalizers,verbs=update
// +kubebuilder:rbac:groups=stowage.dev,resources=nodevolumes;nodedisks,verbs=list;watch
// +kubebuilder:rbac:groups=storage.k8s.io,resources=storageclasses,verbs=list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=persistentvolumes;persistentvolumeclaims;nodes,verbs=get;list;watch

// Reconcile updates one backend's status and class.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (_ ctrl.Result, err error) {
	object := &stowagev1alpha1.StorageBackend{}
	if err := r.client.Get(ctx, request.NamespacedName, object); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	before := object.DeepCopy()
	defer func() {
		err = errors.Join(err, r.writeStatus(ctx, object, before))
	}()
	describe(object)
	if !object.DeletionTimestamp.IsZero() {
		return r.deletion.finish(ctx, object)
	}
	if err := r.ensureFinalizer(ctx, object); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if err := r.countVolumes(ctx, object); err != nil {
		return ctrl.Result{}, err
	}
	if opened := r.accept(object); opened != nil {
		probe(ctx, object, opened)
		reportCapacity(ctx, object, opened, r.storage.Metrics)
	}
	if err := r.classes.ensure(ctx, object); err != nil {
		return ctrl.Result{}, err
	}
	setReady(object)
	r.snapshots.report(object)
	return ctrl.Result{RequeueAfter: probeInterval}, nil
}

// describe sets what follows from the spec alone.
func describe(object *stowagev1alpha1.StorageBackend) {
	object.Status.ObservedGeneration = object.Generation
	object.Status.Type = backend.TypeOf(object)
	object.Status.Driver = backend.DriverOf(object)
}

func (r *Reconciler) ensureFinalizer(ctx context.Context, object *stowagev1alpha1.StorageBackend) error {
	status := object.Status.DeepCopy()
	before := object.DeepCopy()
	if !controllerutil.AddFinalizer(object, stowagev1alpha1.BackendInUseFinalizer) {
		return nil
	}
	err := r.client.Patch(ctx, object, patch.Fenced(before))
	object.Status = *status
	return wrap.Error(err, "adding the finalizer of StorageBackend %s", object.Name)
}

// accept opens the backend. That fails if this version cannot serve the spec.
func (r *Reconciler) accept(object *stowagev1alpha1.StorageBackend) backend.Backend {
	opened, err := r.storage.Registry.Open(object)
	if err != nil {
		setOutcome(object, stowagev1alpha1.AcceptedCondition, err)
		setCondition(object, stowagev1alpha1.ReachableCondition, metav1.ConditionUnknown,
			stowagev1alpha1.ReasonPending, "not probed, because the spec is not accepted")
		return nil
	}
	setOutcome(object, stowagev1alpha1.AcceptedCondition, nil)
	return opened
}

func (r *Reconciler) countVolumes(ctx context.Context, object *stowagev1alpha1.StorageBackend) error {
	volumes := &corev1.PersistentVolumeList{}
	err := r.client.List(ctx, volumes, client.MatchingFields{index.VolumesByBackend: object.Name}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return fmt.Errorf("listing the volumes of StorageBackend %s: %w", object.Name, err)
	}
	count := int32(0)
	for i := range volumes.Items {
		if isIn(&volumes.Items[i], object) {
			count++
		}
	}
	object.Status.Volumes = ptr.To(count)
	return nil
}

// writeStatus writes what changed, and records an event if the backend became unusable.
func (r *Reconciler) writeStatus(ctx context.Context, object, before *stowagev1alpha1.StorageBackend) error {
	if equality.Semantic.DeepEqual(object.Status, before.Status) {
		return nil
	}
	patched := before.DeepCopy()
	patched.Status = object.Status
	err := client.IgnoreNotFound(r.client.Status().Patch(ctx, patched, client.MergeFrom(before)))
	if err != nil {
		return fmt.Errorf("writing the status of StorageBackend %s: %w", object.Name, err)
	}
	now := meta.FindStatusCondition(object.Status.Conditions, stowagev1alpha1.ReadyCondition)
	was := meta.FindStatusCondition(before.Status.Conditions, stowagev1alpha1.ReadyCondition)
	if now != nil && now.Status != metav1.ConditionTrue && (was == nil || was.Message != now.Message) {
		r.events.Eventf(object, nil, corev1.EventTypeWarning, now.Reason, "Probe", "%s", now.Message)
	}
	return nil
}

// SetupWithManager watches backends and what their status depends on.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("storagebackend").
		For(&stowagev1alpha1.StorageBackend{}, wake.OnlyNewBackends()).
		Owns(&storagev1.StorageClass{}).
		Watches(&corev1.PersistentVolume{}, countedLater()).
		Watches(&stowagev1alpha1.NodeVolume{}, leftLater()).
		Watches(&stowagev1alpha1.NodeDisk{}, probedSoon()).
		Watches(&corev1.Node{}, handler.EnqueueRequestsFromMapFunc(localBackends(r.client)), wake.OnlyNodeLabels()).
		WithOptions(controller.Options{MaxConcurrentReconciles: probes}).
		Complete(effect.Reported[ctrl.Request](r))
}
