// Package diskagent reconciles the NodeDisks of one node. It accepts new disks, recognises
// accepted ones, measures their room, and lists volumes on them that have no NodeVolume. It
// writes the status of NodeDisks, and markers on disks. It never touches a volume.
package diskagent

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/effect"
	"github.com/stowage-dev/stowage/internal/node/localdisk"
	"github.com/stowage-dev/stowage/internal/node/localdisk/condition"
	"github.com/stowage-dev/stowage/internal/node/localdisk/identity"
	"github.com/stowage-dev/stowage/internal/node/localdisk/layout"
	"github.com/stowage-dev/stowage/internal/node/localdisk/room"
	"github.com/stowage-dev/stowage/internal/node/localdisk/spec"
)

const (
	// diskInterval is the time between two measurements of a disk: pods fill it, and
	// administrators unmount it, without an event.
	diskInterval = 10 * time.Second
	// diskWorkers is how many disks are reconciled at once: one that hangs keeps its worker.
	diskWorkers = 16
)

// Reconciler accepts new disks, recognises accepted ones, and reports their room and health.
type Reconciler struct {
	localdisk.Options
	metrics *Metrics

	mu sync.Mutex
	// written is when the status of each disk was written last.
	written map[string]time.Time
}

// NewReconciler returns the reconciler of a node's NodeDisks.
func NewReconciler(options localdisk.Options) *Reconciler {
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}
	return &Reconciler{Options: options, metrics: NewMetrics(), written: map[string]time.Time{}}
}

// +kubebuilder:rbac:groups=stowage.dev,resources=nodedisks,verbs=get;list;watch
// +kubebuilder:rbac:groups=stowage.dev,resources=nodedisks/status,verbs=patch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Reconcile checks and measures one disk, and reports that in its status.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	stored := &stowagev1alpha1.NodeDisk{}
	err := r.Client.Get(ctx, request.NamespacedName, stored)
	if apierrors.IsNotFound(err) {
		r.forget(request.Name)
		return ctrl.Result{}, nil
	}
	if err != nil || stored.Spec.NodeName != r.NodeName || !stored.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, err
	}
	disk := stored.DeepCopy()
	disk.Status.ObservedGeneration = disk.Generation
	problem := r.identify(ctx, disk)
	if problem == nil {
		recorded := func() (map[string]bool, error) { return volumeNames(ctx, r.Client, disk) }
		problem = errors.Join(r.measure(ctx, disk), setUnrecorded(disk, stored.Status.Identity, r.Store.Disks, recorded))
	}
	setReady(disk, problem, r.Store.Base)
	if err := r.write(ctx, stored, disk); err != nil {
		return ctrl.Result{}, err
	}
	r.metrics.set(disk)
	return ctrl.Result{RequeueAfter: diskInterval}, nil
}

// identify checks that the accepted disk is there, or accepts the one that is.
func (r *Reconciler) identify(ctx context.Context, disk *stowagev1alpha1.NodeDisk) error {
	if disk.Status.Identity == nil {
		if err := r.checkPathIsFree(ctx, disk); err != nil {
			return err
		}
	}
	there, err := r.Store.Disks.Identify(identity.Disk{
		Name: disk.Name, Path: string(disk.Spec.Path), Backend: disk.Spec.Backend,
		Known: disk.Status.Identity, Replaces: disk.Spec.Replaces,
	}, r.volumes(ctx))
	if there != nil {
		disk.Status.Identity = there
	}
	return err
}

// checkPathIsFree refuses a folder that overlaps that of another backend. The older backend
// keeps it.
func (r *Reconciler) checkPathIsFree(ctx context.Context, disk *stowagev1alpha1.NodeDisk) error {
	disks := &stowagev1alpha1.NodeDiskList{}
	if err := r.Client.List(ctx, disks); err != nil {
		return fmt.Errorf("listing the node's disks: %w", err)
	}
	for i := range disks.Items {
		other := &disks.Items[i]
		if other.Name == disk.Name || other.Spec.NodeName != r.NodeName || !identity.Nested(string(other.Spec.Path), string(disk.Spec.Path)) {
			continue
		}
		if other.Status.Identity != nil || isOlder(other, disk) {
			return fmt.Errorf("%w: path %s overlaps the path of StorageBackend %s (%s): use a separate path",
				identity.ErrPathTaken, disk.Spec.Path, other.Spec.Backend, other.Spec.Path)
		}
	}
	return nil
}

// isOlder reports whether a disk was created before another. Names decide within one second.
func isOlder(a, b *stowagev1alpha1.NodeDisk) bool {
	if a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return a.Name < b.Name
	}
	return a.CreationTimestamp.Before(&b.CreationTimestamp)
}

// measure sets in memory what room the disk has.
func (r *Reconciler) measure(ctx context.Context, disk *stowagev1alpha1.NodeDisk) error {
	var reserved int64
	if disk.Spec.ReservedCapacity != nil {
		reserved = disk.Spec.ReservedCapacity.Value()
	}
	folder, err := r.Store.Disks.OpenFolder(string(disk.Spec.Path))
	if err != nil {
		return err
	}
	defer folder.Close()
	of := layout.Volume{Path: string(disk.Spec.Path), Reserved: reserved}
	measured, err := r.Store.Rooms.At(ctx, folder, of, r.volumes(ctx))
	if err != nil {
		return err
	}
	r.mu.Lock()
	isDue := r.Clock.Since(r.written[disk.Name]) >= room.SmallChanges
	r.mu.Unlock()
	measured.Report(&disk.Status, isDue)
	setRoom(disk, measured)
	return nil
}

// volumes lists all volumes of the node.
func (r *Reconciler) volumes(ctx context.Context) layout.Lister {
	return spec.Others(ctx, r.Client, r.NodeName, "")
}

// write writes the status if it changed, and records events for new problems. Without the
// resourceVersion, a stale status could overwrite the identity of an accepted disk.
func (r *Reconciler) write(ctx context.Context, stored, disk *stowagev1alpha1.NodeDisk) error {
	if equality.Semantic.DeepEqual(stored.Status, disk.Status) {
		return nil
	}
	patch := client.MergeFromWithOptions(stored, client.MergeFromWithOptimisticLock{})
	if err := r.Client.Status().Patch(ctx, disk, patch); err != nil {
		return client.IgnoreNotFound(err)
	}
	r.mu.Lock()
	r.written[disk.Name] = r.Clock.Now()
	r.mu.Unlock()
	for _, kind := range []string{stowagev1alpha1.ReadyCondition, stowagev1alpha1.HasRoomCondition} {
		if found := condition.NewProblem(stored.Status.Conditions, disk.Status.Conditions, kind); found != nil {
			r.Events.Eventf(disk, nil, corev1.EventTypeWarning, found.Reason, "Inspecting", "%s", found.Message)
		}
	}
	return nil
}

func (r *Reconciler) forget(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.written, name)
	r.metrics.forget(name)
}

// SetupWithManager adds the reconciler to a manager.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	if err := r.metrics.Register(r.Metrics); err != nil {
		return fmt.Errorf("registering the metrics of disks: %w", err)
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named("nodedisk").
		For(&stowagev1alpha1.NodeDisk{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&stowagev1alpha1.NodeVolume{}, measureLater(r.Client)).
		WithOptions(controller.Options{MaxConcurrentReconciles: diskWorkers}).
		Complete(effect.Reported[ctrl.Request](r))
}
