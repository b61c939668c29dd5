package csicapacity

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
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
	// RefreshInterval is how often a driver is asked for the room of each object. Jitter is at most added to
	// it, by the object: a driver isn't asked for all at once.
	RefreshInterval = time.Minute
	jitter          = 15 * time.Second
	// leastInterval is the least time between two answers for an object, however many volumes come and go.
	leastInterval = 5 * time.Second
	// askingWaits is how long a worker waits for an answer. A driver that hangs has many objects: the
	// workers are for those of other drivers, too.
	askingWaits = 10 * time.Millisecond
	// refreshers is the number of concurrent reconciles.
	refreshers = 4
)

// Refresher writes the room into the CSIStorageCapacities that the Reconciler keeps. Its requests name one.
type Refresher struct {
	client  client.Client
	storage *opener.Opener
	events  events.EventRecorder
	clock   clock.PassiveClock
	waking  wake.Source
	// answered is when an object had an answer, by its name.
	answered wake.Instants
	failing  failing
	// namespace is where capacities are published.
	namespace string
}

// NewRefresher makes the reconciler.
func NewRefresher(deps reconciler.Dependencies) *Refresher {
	return &Refresher{client: deps.Client, storage: deps.Storage, events: deps.Events, clock: deps.Clock, namespace: deps.Namespace}
}

// +kubebuilder:rbac:groups=storage.k8s.io,resources=csistoragecapacities,verbs=list;watch;patch,namespace=stowage-system
// +kubebuilder:rbac:groups=storage.k8s.io,resources=storageclasses,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=persistentvolumes;persistentvolumeclaims,verbs=list;watch
// +kubebuilder:rbac:groups=stowage.dev,resources=storagebackends,verbs=list;watch

// Reconcile writes the room that the driver has now. After an error the object keeps what it had.
func (r *Refresher) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	had := &storagev1.CSIStorageCapacity{}
	if err := r.client.Get(ctx, request.NamespacedName, had); err != nil {
		if apierrors.IsNotFound(err) {
			r.forget(request.Name)
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	object, class, err := r.read(ctx, had)
	if err != nil || object == nil || class == nil {
		return ctrl.Result{}, err
	}
	if early := r.answered.Last(had.Name).Add(leastInterval).Sub(r.clock.Now()); early > 0 {
		return ctrl.Result{RequeueAfter: early}, nil
	}
	again := ctrl.Result{RequeueAfter: refreshAfter(had.Name)}
	room, err := r.ask(ctx, object, class, had)
	if errors.Is(err, backend.Queued) {
		return again, nil // the answer wakes sooner
	}
	r.answered.Note(had.Name, r.clock.Now())
	if err != nil {
		r.report(object, had, err)
		return again, nil
	}
	r.failing.remove(had.Name)
	want := had.DeepCopy()
	want.Capacity, want.MaximumVolumeSize = &room.Available, room.MaximumVolumeSize
	return again, storagecapacity.Update(ctx, r.client, had, want)
}

// read reads the StorageBackend and the class of an object. Either is nil where the Reconciler removes the
// object, or will.
func (r *Refresher) read(ctx context.Context, had *storagev1.CSIStorageCapacity) (*stowagev1alpha1.StorageBackend, *storagev1.StorageClass, error) {
	driver := ownDriver(had)
	if driver == "" {
		return nil, nil, nil
	}
	object, err := liveread.Find(ctx, driver, &stowagev1alpha1.StorageBackend{}, r.client)
	if err != nil || !serves(object) {
		return nil, nil, err
	}
	class, err := liveread.Find(ctx, had.StorageClassName, &storagev1.StorageClass{}, r.client)
	return object, class, err
}

// refreshAfter is when an object is refreshed again.
func refreshAfter(name string) time.Duration {
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(name))
	return RefreshInterval + time.Duration(sum.Sum64()%uint64(jitter)) //nolint:gosec // less than the jitter
}

func (r *Refresher) ask(
	ctx context.Context, object *stowagev1alpha1.StorageBackend, class *storagev1.StorageClass, of *storagev1.CSIStorageCapacity,
) (backend.ClassCapacity, error) {
	opened, err := r.storage.Open(object, func() { r.waking.Add(client.ObjectKeyFromObject(of)) })
	if err != nil {
		return backend.ClassCapacity{}, err
	}
	reporter, can := backend.As[backend.ClassCapacityReporter](opened)
	if !can {
		return backend.ClassCapacity{}, backend.Invalid.Errorf("StorageBackend %s reports no capacity", object.Name)
	}
	ctx, cancel := context.WithTimeout(ctx, askingWaits)
	defer cancel()
	// A class that asks for what can't be has room, too: else its pods never come to where their claims say so.
	request := backend.CapacityRequest{Class: class.Name, Parameters: storageclass.DriverParameters(class)}
	if of.NodeTopology != nil {
		request.Topology = of.NodeTopology.MatchLabels
	}
	return reporter.CapacityOf(ctx, request)
}

// report records, once for each class, that the room of one of its topologies isn't known. If the whole
// driver is away, the probe of the backend says so.
func (r *Refresher) report(object *stowagev1alpha1.StorageBackend, had *storagev1.CSIStorageCapacity, err error) {
	if !r.failing.add(had.StorageClassName, had.Name) {
		return
	}
	where := ""
	if had.NodeTopology != nil && len(had.NodeTopology.MatchLabels) > 0 {
		where = fmt.Sprintf(" in %v", had.NodeTopology.MatchLabels)
	}
	r.events.Eventf(object, had, corev1.EventTypeWarning, event.CapacityNotPublished, "Publish",
		"the room for volumes of StorageClass %s%s isn't known, and the scheduler goes by the last: %v", had.StorageClassName, where, err)
}

func (r *Refresher) forget(name string) {
	r.answered.Forget(name)
	r.failing.remove(name)
}

// SetupWithManager watches objects that are created, and what changes how much room there is.
func (r *Refresher) SetupWithManager(mgr ctrl.Manager) error {
	watches := watches{r.client, r.namespace}
	return ctrl.NewControllerManagedBy(mgr).
		Named("csicapacity-refresh").
		For(&storagev1.CSIStorageCapacity{}, builder.WithPredicates(exceptUpdates)).
		Watches(&corev1.PersistentVolume{}, handler.EnqueueRequestsFromMapFunc(watches.ofVolume), builder.WithPredicates(madeOrRemoved)).
		Watches(&corev1.PersistentVolumeClaim{}, handler.EnqueueRequestsFromMapFunc(watches.ofClaim), builder.WithPredicates(refused)).
		WatchesRawSource(source.Func(r.waking.Start)).
		WithOptions(controller.Options{MaxConcurrentReconciles: refreshers}).
		Complete(effect.Reported[ctrl.Request](r))
}
