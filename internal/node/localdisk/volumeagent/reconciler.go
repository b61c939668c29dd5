// Package volumeagent reconciles the NodeVolumes of one node: it makes, grows and removes
// volumes through the store, and reports their state in their status. It removes data only
// after status.removing was written for an object whose spec orders it. A volume that was made
// once and is missing is reported as lost, never made again.
package volumeagent

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/effect"
	"github.com/stowage-dev/stowage/internal/node/localdisk"
	"github.com/stowage-dev/stowage/internal/node/localdisk/condition"
	"github.com/stowage-dev/stowage/internal/node/localdisk/layout"
	"github.com/stowage-dev/stowage/internal/node/localdisk/slots"
	"github.com/stowage-dev/stowage/internal/node/localdisk/spec"
	"github.com/stowage-dev/stowage/internal/node/localdisk/store"
	"github.com/stowage-dev/stowage/internal/node/localdisk/usage"
	"github.com/stowage-dev/stowage/internal/wake"
	"github.com/stowage-dev/stowage/internal/workers"
)

const (
	// volumeWorkers is how many volumes are reconciled at once: enough for several disks that
	// hang.
	volumeWorkers = 128
	// roomEach is the time between two volumes that wait for room, and roomRest the shortest time
	// between two rounds. Each volume that is removed wakes them.
	roomEach, roomRest = 10 * time.Millisecond, time.Second
)

// Reconciler makes, grows and removes volumes.
type Reconciler struct {
	localdisk.Options
	finder    diskFinder
	maker     maker
	remover   remover
	inspector inspector
	slots     *slots.Slots
	making    store.InFlight
	attempts  *attempts
	written   *ownWrites
	// roomRounds wakes the volumes that wait for room.
	roomRounds wake.Rounds
}

// NewReconciler returns the reconciler of a node's NodeVolumes.
func NewReconciler(options localdisk.Options) *Reconciler {
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}
	base := options.Store.Base
	finder := diskFinder{nodeName: options.NodeName, client: options.Client}
	copies := newCopySources(options.NodeName, base, options.Live)
	written := &ownWrites{}
	remover := remover{
		client: options.Client, live: options.Live, store: options.Store, finder: finder, copies: copies, written: written, released: &sync.Map{},
	}
	return &Reconciler{
		Options: options, finder: finder, slots: slots.New(), written: written,
		attempts:   &attempts{node: options.NodeName, live: options.Live},
		maker:      maker{node: options.NodeName, client: options.Client, store: options.Store, finder: finder, copies: copies},
		remover:    remover,
		inspector:  inspector{base: base, clock: options.Clock, walker: usage.NewWalker(base, options.Clock), metrics: usage.NewMetrics()},
		roomRounds: wake.Rounds{Clock: clock.RealClock{}, Each: roomEach, Rest: roomRest},
	}
}

// +kubebuilder:rbac:groups=stowage.dev,resources=nodevolumes,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=stowage.dev,resources=nodevolumes/status,verbs=patch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Reconcile makes the volume what its NodeVolume says, and reports its state.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	stored := &stowagev1alpha1.NodeVolume{}
	err := r.Client.Get(ctx, request.NamespacedName, stored)
	if apierrors.IsNotFound(err) {
		r.slots.Forget(request)
		r.inspector.forget(request.Name)
		r.attempts.forget(request.Name)
		r.written.forget(request.Name)
		r.remover.forget(request.Name)
	}
	work := workOn(stored)
	if err != nil || stored.Spec.NodeName != r.NodeName || !r.slots.TryAcquire(work, request) {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	defer r.slots.Release(work)
	return r.pass(ctx, stored)
}

// workOn returns the work that a volume needs now.
func workOn(volume *stowagev1alpha1.NodeVolume) slots.Work {
	copies := volume.Spec.Source != "" && !spec.IsProvisioned(volume)
	return slots.Work{
		Path: string(volume.Spec.Path), Namespace: volume.Spec.ClaimRef.Namespace,
		Long: !volume.DeletionTimestamp.IsZero() || copies,
	}
}

// pass is a reconcile that has a slot. Only here are disks touched.
func (r *Reconciler) pass(ctx context.Context, stored *stowagev1alpha1.NodeVolume) (ctrl.Result, error) {
	volume := stored.DeepCopy()
	volume.Status.ObservedGeneration = volume.Generation
	if volume.DeletionTimestamp != nil && !outlivesObject(volume) {
		return r.remove(ctx, stored, volume)
	}
	if spec.IsProvisioned(volume) {
		result, err := r.ensureThere(ctx, volume)
		r.inspector.report(ctx, volume, err)
		if err == nil && outlivesObject(volume) {
			err = keptIn(volume, spec.VolumeOf(volume).Directory())
		}
		return r.finish(ctx, stored, volume, result, err)
	}
	return r.provision(ctx, stored, volume)
}

// provision makes the volume, if the cache isn't stale.
func (r *Reconciler) provision(ctx context.Context, stored, volume *stowagev1alpha1.NodeVolume) (ctrl.Result, error) {
	// Before the live read, which may miss a deletion: the watch then cancels the making.
	making, end := r.making.Begin(ctx, volume.UID)
	defer end()
	current, err := r.isCurrent(ctx, volume)
	if err != nil {
		return ctrl.Result{}, err
	}
	if !current {
		return ctrl.Result{RequeueAfter: staleRetry}, nil
	}
	err = r.maker.make(making, volume)
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
		r.inspector.reportNew(ctx, volume)
		result, err := r.finish(ctx, stored, volume, ctrl.Result{RequeueAfter: checkInterval}, nil)
		logMade(ctx, volume, err)
		return result, err
	}
	return r.finish(ctx, stored, volume, retryOf(err), err)
}

// isCurrent reports whether a volume that has to be made is so on the API server, too. In a stale cache, one that was made, and
// lost since, looks like that. It needs no live read where no process tried to make the volume before. A copy may take hours,
// and what is adopted has data: both are read in any case.
func (r *Reconciler) isCurrent(ctx context.Context, volume *stowagev1alpha1.NodeVolume) (bool, error) {
	first, err := r.attempts.beginFirst(ctx, volume)
	if first && volume.Spec.Source == "" && !volume.Spec.Adopt || err != nil {
		return first, err
	}
	live := &stowagev1alpha1.NodeVolume{}
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(volume), live); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	return live.UID == volume.UID && live.ResourceVersion == volume.ResourceVersion, nil
}

// ensureThere checks that a volume that was made still exists, and repairs and grows it.
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
	return ctrl.Result{RequeueAfter: r.maker.grow(ctx, volume)}, nil
}

// remove removes the volume's data, and then the finalizer.
func (r *Reconciler) remove(ctx context.Context, stored, volume *stowagev1alpha1.NodeVolume) (ctrl.Result, error) {
	if r.remover.hasReleased(volume) {
		return ctrl.Result{}, nil
	}
	err := r.remover.removeData(ctx, volume)
	if err != nil && !errors.Is(err, errStale) {
		return r.finish(ctx, stored, volume, retryOf(err), err)
	}
	if err == nil {
		err = r.remover.removeFinalizer(ctx, volume)
	}
	if errors.Is(err, errStale) {
		return ctrl.Result{RequeueAfter: staleRetry}, nil
	}
	if err == nil {
		effect.Log(ctx, effect.Deleted, volume.DeletionTimestamp.Time, volume)
	}
	return ctrl.Result{}, err
}

// finish writes the status if it changed, and records events for new problems.
func (r *Reconciler) finish(ctx context.Context, stored, volume *stowagev1alpha1.NodeVolume, result ctrl.Result, problem error) (ctrl.Result, error) {
	if problem != nil {
		setProblem(volume, reasons.Of(problem), layout.MessageOf(problem, r.Store.Base))
	}
	if equality.Semantic.DeepEqual(stored.Status, volume.Status) {
		return result, nil
	}
	r.written.note(volume)
	if err := r.Client.Status().Patch(ctx, volume, statusChange(stored, volume)); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	found := condition.NewProblem(stored.Status.Conditions, volume.Status.Conditions, stowagev1alpha1.ReadyCondition)
	if found != nil && found.Reason != stowagev1alpha1.ReasonPending {
		r.Events.Eventf(volume, nil, corev1.EventTypeWarning, found.Reason, "Reconciling", "%s", found.Message)
	}
	recordHealth(r.Events, stored, volume)
	return result, nil
}

// CheckDisk returns an error where the volume in a directory isn't on the accepted disk of its
// backend. The CSI driver calls it before it publishes a volume: a copy of the disk, or an
// earlier state of it, has the volume, too. It checks nothing where no backend has the folder.
func (r *Reconciler) CheckDisk(ctx context.Context, directory string) error {
	folder := filepath.Dir(directory)
	disk, err := r.finder.findDiskWhere(ctx, func(disk *stowagev1alpha1.NodeDisk) bool {
		return string(disk.Spec.Path) == folder && disk.Status.Identity != nil
	})
	if disk == nil || err != nil {
		return err
	}
	return r.Store.Disks.CheckDisk(layout.Volume{Path: folder, Disk: disk.Status.Identity})
}

// SetupWithManager adds the reconciler to a manager. A volume that is removed makes room for
// those that found none.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	if err := r.inspector.metrics.Register(r.Metrics); err != nil {
		return fmt.Errorf("registering the metrics of local volumes: %w", err)
	}
	if err := mgr.Add(r.inspector.walker); err != nil {
		return fmt.Errorf("adding the walker that counts files: %w", err)
	}
	wakePendingRoom := handler.Funcs{DeleteFunc: func(ctx context.Context, _ event.DeleteEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		r.roomRounds.Wake(r.NodeName, queue, func() []reconcile.Request { return pendingRoom(ctx, r.Client) })
	}}
	return ctrl.NewControllerManagedBy(mgr).
		Named("nodevolume").
		For(&stowagev1alpha1.NodeVolume{}, r.written.others()).
		Watches(&stowagev1alpha1.NodeVolume{}, wakePendingRoom).
		Watches(&stowagev1alpha1.NodeVolume{}, cancelDeleted(&r.making)).
		Watches(&stowagev1alpha1.NodeDisk{}, handler.EnqueueRequestsFromMapFunc(volumesOfDisk(r.Client)), changedDisks()).
		WatchesRawSource(source.Channel(r.inspector.walker.Counted, &handler.TypedEnqueueRequestForObject[*stowagev1alpha1.NodeVolume]{})).
		WatchesRawSource(r.slots).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers.Of(mgr, workers.NodeVolumes, volumeWorkers)}).
		Complete(effect.Reported[ctrl.Request](r))
}
