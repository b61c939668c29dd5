// Package storagebackend is the reconciler of StorageBackends. It probes them, adds up their
// capacity, keeps the StorageClass of their spec, and releases a deleted backend once nothing
// needs it. It writes the backend's status and the class. It never creates or deletes volumes;
// package audit compares what backends hold with the cluster.
package storagebackend

import (
	"context"
	"errors"
	"fmt"
	"time"

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
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/index"
	"github.com/stowage-dev/stowage/internal/message"
	"github.com/stowage-dev/stowage/internal/opener"
	"github.com/stowage-dev/stowage/internal/wake"
	"github.com/stowage-dev/stowage/internal/wrap"
)

const probeInterval = time.Minute

// countDelay is the delay after a volume was created or deleted, before volumes are counted.
const countDelay = time.Second

// probeTimeout is how long storage has to answer, and probes how many run at once: a hanging
// one must not block the others.
const (
	probeTimeout = 20 * time.Second
	probes       = 8
)

// Reconciler sets in a StorageBackend's status whether it can be used, keeps its StorageClass,
// and keeps the object while volumes need it.
type Reconciler struct {
	client  client.Client
	live    client.Reader
	storage *opener.Opener
	events  events.EventRecorder
}

// New makes the reconciler.
func New(deps reconciler.Dependencies) *Reconciler {
	return &Reconciler{
		client:  deps.Client,
		live:    deps.Live,
		storage: deps.Storage,
		events:  deps.Events,
	}
}

// +kubebuilder:rbac:groups=stowage.dev,resources=storagebackends,verbs=get;list;watch;update;patch
// +kubebuilder:rbac:groups=stowage.dev,resources=storagebackends/status,verbs=update;patch
// +kubebuilder:rbac:groups=stowage.dev,resources=storagebackends/finalizers,verbs=update
// +kubebuilder:rbac:groups=stowage.dev,resources=nodevolumes;nodedisks,verbs=get;list;watch
// +kubebuilder:rbac:groups=storage.k8s.io,resources=storageclasses,verbs=get;list;watch;create;update;patch;delete
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
	r.describe(object)
	if !object.DeletionTimestamp.IsZero() {
		return r.finish(ctx, object)
	}
	if err := r.ensureFinalizer(ctx, object); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if err := r.countVolumes(ctx, object); err != nil {
		return ctrl.Result{}, err
	}
	if opened := r.accept(object); opened != nil {
		r.probe(ctx, object, opened)
		r.reportCapacity(ctx, object, opened)
	}
	if err := r.ensureClass(ctx, object); err != nil {
		return ctrl.Result{}, err
	}
	setReady(object)
	return ctrl.Result{RequeueAfter: probeInterval}, nil
}

// describe sets what follows from the spec alone.
func (r *Reconciler) describe(object *stowagev1alpha1.StorageBackend) {
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
	err := r.client.Patch(ctx, object, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	object.Status = *status
	return wrap.Error(err, "adding the finalizer of StorageBackend %s", object.Name)
}

// accept opens the backend. That fails if this version cannot serve the spec.
func (r *Reconciler) accept(object *stowagev1alpha1.StorageBackend) backend.Backend {
	opened, err := r.storage.Registry.Open(object)
	if err != nil {
		r.set(object, stowagev1alpha1.AcceptedCondition, err)
		setCondition(object, stowagev1alpha1.ReachableCondition, metav1.ConditionUnknown,
			stowagev1alpha1.ReasonPending, "not asked, because the spec is not accepted")
		return nil
	}
	r.set(object, stowagev1alpha1.AcceptedCondition, nil)
	return opened
}

func (r *Reconciler) probe(ctx context.Context, object *stowagev1alpha1.StorageBackend, opened backend.Backend) {
	prober, can := backend.As[backend.Prober](opened)
	if !can {
		r.set(object, stowagev1alpha1.ReachableCondition, nil)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	r.set(object, stowagev1alpha1.ReachableCondition, prober.Probe(ctx))
}

func (r *Reconciler) countVolumes(ctx context.Context, object *stowagev1alpha1.StorageBackend) error {
	volumes := &corev1.PersistentVolumeList{}
	if err := r.client.List(ctx, volumes, client.MatchingFields{index.VolumesByBackend: object.Name}); err != nil {
		return fmt.Errorf("listing the volumes of StorageBackend %s: %w", object.Name, err)
	}
	object.Status.Volumes = ptr.To(int32(len(volumes.Items)))
	return nil
}

// set turns the outcome of a check into a condition.
func (r *Reconciler) set(object *stowagev1alpha1.StorageBackend, condition string, err error) {
	if err == nil {
		setCondition(object, condition, metav1.ConditionTrue, stowagev1alpha1.ReasonReady, "")
		return
	}
	reason := stowagev1alpha1.ReasonUnavailable
	if errors.Is(err, backend.Invalid) {
		reason = stowagev1alpha1.ReasonInvalid
	}
	setCondition(object, condition, metav1.ConditionFalse, reason, err.Error())
}

// setReady combines the named conditions: the first that is not True decides.
func setReady(object *stowagev1alpha1.StorageBackend) {
	for _, name := range []string{
		stowagev1alpha1.AcceptedCondition, stowagev1alpha1.ReachableCondition, stowagev1alpha1.StorageClassReadyCondition,
	} {
		if named := meta.FindStatusCondition(object.Status.Conditions, name); named != nil && named.Status != metav1.ConditionTrue {
			setCondition(object, stowagev1alpha1.ReadyCondition, metav1.ConditionFalse, named.Reason, named.Message)
			return
		}
	}
	setCondition(object, stowagev1alpha1.ReadyCondition, metav1.ConditionTrue, stowagev1alpha1.ReasonReady, "volumes can be provisioned")
}

func setCondition(object *stowagev1alpha1.StorageBackend, name string, status metav1.ConditionStatus, reason, text string) {
	meta.SetStatusCondition(&object.Status.Conditions, metav1.Condition{
		Type: name, Status: status, Reason: reason, Message: message.Cut(text, message.MaxCondition), ObservedGeneration: object.Generation,
	})
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
		Watches(&stowagev1alpha1.NodeVolume{}, handler.EnqueueRequestsFromMapFunc(backendOfNodeVolume)).
		Watches(&stowagev1alpha1.NodeDisk{}, probedSoon()).
		Watches(&corev1.Node{}, handler.EnqueueRequestsFromMapFunc(r.localBackends), wake.OnlyNodeLabels()).
		WithOptions(controller.Options{MaxConcurrentReconciles: probes}).
		Complete(r)
}

// countedLater wakes the backend of a volume that is created or deleted, after a delay: one
// count, and one write, covers many.
func countedLater() handler.EventHandler {
	count := func(object client.Object, queue wake.Queue) {
		for _, name := range index.BackendOf(object.(*corev1.PersistentVolume)) {
			queue.AddAfter(wake.RequestNamed(name), countDelay)
		}
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, queue wake.Queue) { count(e.Object, queue) },
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, queue wake.Queue) { count(e.Object, queue) },
	}
}

func backendOfNodeVolume(_ context.Context, object client.Object) []reconcile.Request {
	return []reconcile.Request{wake.RequestNamed(object.(*stowagev1alpha1.NodeVolume).Spec.Backend)}
}

// localBackends wakes the backends with storage on nodes.
func (r *Reconciler) localBackends(ctx context.Context, _ client.Object) []reconcile.Request {
	objects := &stowagev1alpha1.StorageBackendList{}
	if err := r.client.List(ctx, objects, wake.Unhurried); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "listing backends")
	}
	var requests []reconcile.Request
	for _, object := range objects.Items {
		if object.Spec.Local != nil {
			requests = append(requests, wake.RequestNamed(object.Name))
		}
	}
	return requests
}
