// Package csicapacity publishes for the scheduler how much room CSI drivers have that Stowage serves, as
// external-provisioner does. The Reconciler keeps a CSIStorageCapacity for each class that waits for a
// consumer and each topology of a driver. The Refresher asks the driver for the room, and writes it.
//
// Both write only objects with the labels of this package, in the manager's namespace: those of other
// managers stay. They make no volume, and decide on no node.
package csicapacity

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/effect"
	"github.com/stowage-dev/stowage/internal/event"
	"github.com/stowage-dev/stowage/internal/liveread"
	"github.com/stowage-dev/stowage/internal/opener"
	"github.com/stowage-dev/stowage/internal/storagecapacity"
	"github.com/stowage-dev/stowage/internal/storageclass"
	"github.com/stowage-dev/stowage/internal/wake"
)

const (
	// checkInterval is how often a driver is asked again whether it reports capacity, and where.
	checkInterval = time.Minute
	// MaxObjects bounds the CSIStorageCapacities of a driver.
	MaxObjects = 5000
	// drivers is the number of concurrent reconciles.
	drivers = 4
)

// Reconciler keeps the CSIStorageCapacities of a driver. Its requests name a driver.
type Reconciler struct {
	client   client.Client
	storage  *opener.Opener
	events   events.EventRecorder
	recorded event.Last
	waking   wake.Source
	// namespace is where capacities are published.
	namespace string
}

// New makes the reconciler.
func New(deps reconciler.Dependencies) *Reconciler {
	return &Reconciler{client: deps.Client, storage: deps.Storage, events: deps.Events, namespace: deps.Namespace}
}

// +kubebuilder:rbac:groups=storage.k8s.io,resources=csistoragecapacities,verbs=list;watch;create;delete,namespace=stowage-system
// +kubebuilder:rbac:groups=storage.k8s.io,resources=csidrivers;csinodes;storageclasses,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=nodes,verbs=list;watch
// +kubebuilder:rbac:groups=stowage.dev,resources=storagebackends,verbs=list;watch
// +kubebuilder:rbac:groups=stowage.dev,resources=storagebackends/finalizers,verbs=update
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Reconcile creates and deletes the objects of one driver.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	published := &storagev1.CSIStorageCapacityList{}
	if err := r.client.List(ctx, published, client.InNamespace(r.namespace), ofDriver(request.Name)); err != nil {
		return ctrl.Result{}, fmt.Errorf("listing the capacities of driver %s: %w", request.Name, err)
	}
	object, classes, err := r.served(ctx, request.Name)
	if err != nil {
		return ctrl.Result{}, err
	}
	if len(classes) == 0 {
		r.recorded.Forget(request.NamespacedName)
		return ctrl.Result{}, storagecapacity.Publish(ctx, r.client, published.Items, nil)
	}
	topologies, err := r.topologies(ctx, request, object)
	if err != nil {
		// Without an answer all stays, but for what is of a class that is gone. The probe of the backend says why.
		gone := slices.DeleteFunc(published.Items, func(had storagev1.CSIStorageCapacity) bool {
			return slices.Contains(classes, had.StorageClassName)
		})
		return ctrl.Result{RequeueAfter: checkInterval}, storagecapacity.Publish(ctx, r.client, gone, nil)
	}
	return ctrl.Result{RequeueAfter: checkInterval}, storagecapacity.Publish(ctx, r.client, published.Items, r.desired(object, classes, topologies))
}

// served returns the StorageBackend of a driver, and the classes for which the scheduler needs to know the
// room. There is none where the driver isn't served, or its CSIDriver doesn't let the scheduler ask.
func (r *Reconciler) served(ctx context.Context, driver string) (*stowagev1alpha1.StorageBackend, []string, error) {
	object, err := liveread.Find(ctx, driver, &stowagev1alpha1.StorageBackend{}, r.client)
	if err != nil || !serves(object) {
		return nil, nil, err
	}
	registered, err := liveread.Find(ctx, driver, &storagev1.CSIDriver{}, r.client)
	if err != nil || registered == nil || !ptr.Deref(registered.Spec.StorageCapacity, false) {
		return nil, nil, err
	}
	all := &storagev1.StorageClassList{}
	if err := r.client.List(ctx, all, client.UnsafeDisableDeepCopy); err != nil {
		return nil, nil, fmt.Errorf("listing StorageClasses: %w", err)
	}
	var classes []string
	for i := range all.Items {
		if class := &all.Items[i]; class.Provisioner == driver && class.DeletionTimestamp.IsZero() && storageclass.WaitsForConsumer(class) {
			classes = append(classes, class.Name)
		}
	}
	slices.Sort(classes)
	return object, classes, nil
}

// errNoAnswer: the backend can't be opened, or is still to answer.
var errNoAnswer = errors.New("the driver has no answer")

func (r *Reconciler) topologies(ctx context.Context, request ctrl.Request, object *stowagev1alpha1.StorageBackend) ([]map[string]string, error) {
	opened, err := r.storage.Open(object, func() { r.waking.Add(request.NamespacedName) })
	if err != nil {
		return nil, errNoAnswer
	}
	reporter, can := backend.As[backend.TopologyReporter](opened)
	if !can {
		return nil, nil
	}
	return reporter.CapacityTopologies(ctx)
}

// desired returns the objects that a driver should have, by name.
func (r *Reconciler) desired(object *stowagev1alpha1.StorageBackend, classes []string, topologies []map[string]string) map[string]*storagev1.CSIStorageCapacity {
	desired := map[string]*storagev1.CSIStorageCapacity{}
	for _, class := range classes {
		for _, topology := range topologies {
			if len(desired) == MaxObjects {
				r.report(object)
				return desired
			}
			capacity := objectFor(r.namespace, object, class, topology)
			desired[capacity.Name] = capacity
		}
	}
	r.recorded.Forget(client.ObjectKeyFromObject(object))
	return desired
}

func (r *Reconciler) report(object *stowagev1alpha1.StorageBackend) {
	text := fmt.Sprintf("driver %s has more than %d pairs of a class and a topology: pods with claims of the others are not scheduled; "+
		"remove classes that aren't used, or set spec.storageCapacity of its CSIDriver to false", object.Name, MaxObjects)
	if r.recorded.IsNew(client.ObjectKeyFromObject(object), text) {
		r.events.Eventf(object, nil, corev1.EventTypeWarning, event.CapacityNotPublished, "Publish", "%s", text)
	}
}

// SetupWithManager watches what the objects of a driver depend on.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	ofAll := wake.Delayed(settles, driversOf(r.client))
	return ctrl.NewControllerManagedBy(mgr).
		Named("csicapacity").
		For(&stowagev1alpha1.StorageBackend{}, wake.OnlyNewBackends()).
		Watches(&storagev1.StorageClass{}, handler.EnqueueRequestsFromMapFunc(driverOfClass)).
		Watches(&storagev1.CSIDriver{}, handler.EnqueueRequestsFromMapFunc(driverNamed)).
		Watches(&storagev1.CSIStorageCapacity{}, handler.EnqueueRequestsFromMapFunc(driverOfCapacity), builder.WithPredicates(exceptUpdates)).
		Watches(&storagev1.CSINode{}, ofAll, builder.WithPredicates(onlyNewDrivers)).
		Watches(&corev1.Node{}, ofAll, wake.OnlyNodeLabels()).
		WatchesRawSource(source.Func(r.waking.Start)).
		WithOptions(controller.Options{MaxConcurrentReconciles: drivers}).
		Complete(effect.Reported[ctrl.Request](r))
}
