// Package volumeagent reconciles the NodeVolumes of one node: it has volumes made, grown and
// removed, and writes how they are to their status. It removes data only after
// status.removing was written for an object whose spec orders it. A volume that was made
// once and is missing is reported as lost, never made again.
package volumeagent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/node/localdisk"
	"github.com/stowage-dev/stowage/internal/node/localdisk/inspect"
	"github.com/stowage-dev/stowage/internal/node/localdisk/layout"
	"github.com/stowage-dev/stowage/internal/node/localdisk/spec"
	"github.com/stowage-dev/stowage/internal/node/localdisk/store"
	"github.com/stowage-dev/stowage/internal/node/localdisk/turns"
	"github.com/stowage-dev/stowage/internal/node/localdisk/usage"
	"github.com/stowage-dev/stowage/internal/wake"
)

const (
	// staleRetry is how soon a pass is repeated whose cache was behind.
	staleRetry = 200 * time.Millisecond
	// inUseRetry is how often a volume that is to go is tried while it is mounted.
	inUseRetry = 2 * time.Second
	// problemRetry is how often what may cure itself is tried, such as a full disk.
	problemRetry = 30 * time.Second
	// checkInterval is how often a volume is looked at that nothing happens to.
	checkInterval = time.Minute
	// volumeWorkers is how many volumes are worked on at once. They are there for several
	// disks that hang.
	volumeWorkers = 128
	// sliceRetry is how soon a removal goes on that gave its place to others.
	sliceRetry = 10 * time.Millisecond
	// roomEach is how long volumes that wait for room leave each other, and roomRest how
	// long they rest at least: each volume that goes wakes them.
	roomEach, roomRest = 10 * time.Millisecond, time.Second
)

// Reconciler makes and removes volumes.
type Reconciler struct {
	localdisk.Options
	finder  diskFinder
	scenes  inspect.Snapshots
	lanes   *turns.Lanes
	makings store.InFlight
	walker  *usage.Walker
	numbers *usage.Metrics
	// rooms wakes the volumes that wait for room.
	rooms wake.Rounds
}

// NewReconciler returns the reconciler of a node's NodeVolumes.
func NewReconciler(options localdisk.Options) *Reconciler {
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}
	return &Reconciler{
		Options: options, finder: diskFinder{nodeName: options.NodeName, client: options.Client}, lanes: turns.NewLanes(), walker: usage.NewWalker(options.Store.Base, options.Clock), numbers: usage.NewMetrics(),
		rooms: wake.Rounds{Clock: clock.RealClock{}, Each: roomEach, Rest: roomRest},
	}
}

// +kubebuilder:rbac:groups=stowage.dev,resources=nodevolumes,verbs=get;list;watch;update;patch
// +kubebuilder:rbac:groups=stowage.dev,resources=nodevolumes/status,verbs=update;patch
// +kubebuilder:rbac:groups=stowage.dev,resources=nodevolumes/finalizers,verbs=update
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch;update

// Reconcile makes the volume what its NodeVolume says, and says how it is.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	stored := &stowagev1alpha1.NodeVolume{}
	err := r.Client.Get(ctx, request.NamespacedName, stored)
	if apierrors.IsNotFound(err) {
		r.forget(request)
	}
	place := passOf(stored)
	if err != nil || stored.Spec.NodeName != r.NodeName || !r.lanes.Enter(place, request) {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	defer r.lanes.Leave(place)
	return r.pass(ctx, stored)
}

// pass goes over a volume. Only here are disks touched.
func (r *Reconciler) pass(ctx context.Context, stored *stowagev1alpha1.NodeVolume) (ctrl.Result, error) {
	volume := stored.DeepCopy()
	volume.Status.ObservedGeneration = volume.Generation
	if volume.DeletionTimestamp != nil && !outlivesObject(volume) {
		return r.remove(ctx, stored, volume)
	}
	if spec.IsProvisioned(volume) {
		result, err := r.ensureThere(ctx, volume)
		r.look(ctx, volume, err)
		if err == nil && outlivesObject(volume) {
			err = keptIn(volume, spec.VolumeOf(volume).Directory())
		}
		return r.finish(ctx, stored, volume, result, err)
	}
	return r.provision(ctx, stored, volume)
}

// provision makes the volume. It goes by a live read: to a cache that is behind,
// a volume that was made, and lost since, looks like one to be made.
func (r *Reconciler) provision(ctx context.Context, stored, volume *stowagev1alpha1.NodeVolume) (ctrl.Result, error) {
	// Before the live read: a deletion that this one doesn't see is heeded.
	making, end := r.makings.Begin(ctx, volume.UID)
	defer end()
	live := &stowagev1alpha1.NodeVolume{}
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(volume), live); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if live.UID != volume.UID || live.ResourceVersion != volume.ResourceVersion {
		return ctrl.Result{RequeueAfter: staleRetry}, nil
	}
	err := r.make(making, volume)
	if err == nil {
		err = r.Store.Base.KeepRecord(spec.VolumeOf(volume))
	}
	if err != nil && store.IsCancelled(making) {
		return ctrl.Result{RequeueAfter: staleRetry}, nil
	}
	if err == nil {
		setCondition(volume, stowagev1alpha1.ProvisionedCondition, stowagev1alpha1.ReasonReady, "the volume is on its node's disk")
		setCondition(volume, stowagev1alpha1.ReadyCondition, stowagev1alpha1.ReasonReady, "the volume can be mounted")
		volume.Status.Path = spec.VolumeOf(volume).Directory()
		setGranted(volume)
		r.lookAtNew(ctx, volume)
		return r.finish(ctx, stored, volume, ctrl.Result{RequeueAfter: checkInterval}, nil)
	}
	return r.finish(ctx, stored, volume, retryOf(err), err)
}

func (r *Reconciler) make(ctx context.Context, volume *stowagev1alpha1.NodeVolume) error {
	if err := spec.CheckSpec(volume); err != nil {
		return err
	}
	if volume.Spec.Adopt {
		return r.adopt(ctx, volume)
	}
	source, err := r.sourceOf(ctx, volume)
	if err != nil {
		return err
	}
	wanted, err := r.finder.onAcceptedDisk(ctx, volume)
	if err != nil {
		return err
	}
	wanted.Source = source
	return r.Store.Make(ctx, wanted, spec.Others(ctx, r.Client, r.NodeName, volume.Name))
}

// ensureThere looks after a volume that was made: it may be missing, or be asked
// to grow.
func (r *Reconciler) ensureThere(ctx context.Context, volume *stowagev1alpha1.NodeVolume) (ctrl.Result, error) {
	there, err := r.finder.onDisk(ctx, volume)
	if err != nil {
		return retryOf(err), err
	}
	if err := r.Store.Confirm(there); err != nil {
		return retryOf(err), err
	}
	if err := errors.Join(r.Store.Mend(there), r.Store.Base.KeepRecord(there)); err != nil {
		return retryOf(err), err
	}
	setCondition(volume, stowagev1alpha1.ReadyCondition, stowagev1alpha1.ReasonReady, "the volume can be mounted")
	return ctrl.Result{RequeueAfter: r.grow(ctx, volume)}, nil
}

// finish writes the status, if it says something new, and tells of a new problem.
func (r *Reconciler) finish(ctx context.Context, stored, volume *stowagev1alpha1.NodeVolume, result ctrl.Result, problem error) (ctrl.Result, error) {
	if problem != nil {
		setProblem(volume, reasonOf(problem), layout.MessageOf(problem, r.Store.Base))
	}
	if equality.Semantic.DeepEqual(stored.Status, volume.Status) {
		return result, nil
	}
	if err := r.Client.Status().Patch(ctx, volume, client.MergeFrom(stored)); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	now := meta.FindStatusCondition(volume.Status.Conditions, stowagev1alpha1.ReadyCondition)
	before := meta.FindStatusCondition(stored.Status.Conditions, stowagev1alpha1.ReadyCondition)
	isNews := before == nil || before.Reason != now.Reason
	if problem != nil && isNews && now.Reason != stowagev1alpha1.ReasonPending {
		r.Events.Eventf(volume, nil, corev1.EventTypeWarning, now.Reason, "Reconciling", "%s", now.Message)
	}
	r.tellHealth(stored, volume)
	return result, nil
}

// SetupWithManager adds the reconciler to a manager. A volume that goes makes
// room for those that found none.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	if err := r.numbers.Register(r.Metrics); err != nil {
		return fmt.Errorf("registering the metrics of local volumes: %w", err)
	}
	if err := mgr.Add(r.walker); err != nil {
		return fmt.Errorf("adding what counts files: %w", err)
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named("nodevolume").
		For(&stowagev1alpha1.NodeVolume{}).
		Watches(&stowagev1alpha1.NodeVolume{}, r.deletions()).
		Watches(&stowagev1alpha1.NodeVolume{}, r.heedDeletions()).
		Watches(&stowagev1alpha1.NodeDisk{}, handler.EnqueueRequestsFromMapFunc(r.volumesOfDisk), onlyOtherDisks()).
		WatchesRawSource(source.Channel(r.walker.Counted, &handler.TypedEnqueueRequestForObject[*stowagev1alpha1.NodeVolume]{})).
		WatchesRawSource(r.lanes).
		WithOptions(controller.Options{MaxConcurrentReconciles: volumeWorkers}).
		Complete(r)
}

// deletions wakes, in rounds, the volumes of the node for which a disk was too full.
func (r *Reconciler) deletions() handler.EventHandler {
	return handler.Funcs{DeleteFunc: func(ctx context.Context, _ event.DeleteEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		r.rooms.Wake(r.NodeName, queue, func() []reconcile.Request { return r.waitingForRoom(ctx) })
	}}
}

// waitingForRoom is the volumes for which the disk was too full.
func (r *Reconciler) waitingForRoom(ctx context.Context) []reconcile.Request {
	list := &stowagev1alpha1.NodeVolumeList{}
	if err := r.Client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		// They are tried again anyhow, only later.
		logf.FromContext(ctx).Error(err, "listing volumes that wait for room")
	}
	var waiting []reconcile.Request
	for _, volume := range list.Items {
		if slices.ContainsFunc(volume.Status.Conditions, func(condition metav1.Condition) bool { return condition.Reason == stowagev1alpha1.ReasonExhausted }) {
			waiting = append(waiting, reconcile.Request{NamespacedName: types.NamespacedName{Name: volume.Name}})
		}
	}
	return waiting
}
