// Package diskagent reconciles the NodeDisks of one node. It accepts new disks, recognises
// known ones, measures their room, and lists volumes on them that no NodeVolume has. It
// writes the status of NodeDisks and markers on disks. It never touches a volume.
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
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/node/localdisk"
	"github.com/stowage-dev/stowage/internal/node/localdisk/identity"
	"github.com/stowage-dev/stowage/internal/node/localdisk/layout"
	"github.com/stowage-dev/stowage/internal/node/localdisk/room"
	"github.com/stowage-dev/stowage/internal/node/localdisk/spec"
)

const (
	// diskInterval is how often a disk is looked at that nothing happens to: pods
	// fill it, and somebody unmounts it, without a word.
	diskInterval = 10 * time.Second
	// diskDelay is how long after a volume came, grew or went the room is measured:
	// that of many volumes is measured, and written, once.
	diskDelay = time.Second
	// diskWorkers is how many disks are looked at at once: one that answers nobody keeps
	// its worker.
	diskWorkers = 16
)

// Reconciler says how a node's disks are and what room they have, accepts new
// ones, and has the volumes of those that are missing, or others, left alone.
type Reconciler struct {
	localdisk.Options
	numbers *metrics
	clock   clock.PassiveClock

	mu sync.Mutex
	// written is when the numbers of each disk were written last.
	written map[string]time.Time
}

// NewReconciler returns the reconciler of a node's NodeDisks.
func NewReconciler(options localdisk.Options) *Reconciler {
	return &Reconciler{Options: options, numbers: newMetrics(), clock: clock.RealClock{}, written: map[string]time.Time{}}
}

// +kubebuilder:rbac:groups=stowage.dev,resources=nodedisks,verbs=get;list;watch
// +kubebuilder:rbac:groups=stowage.dev,resources=nodedisks/status,verbs=update;patch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch;update

// Reconcile looks at one disk.
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
		problem = errors.Join(r.measure(ctx, disk), r.lookForUnrecorded(ctx, stored, disk))
	}
	setDiskReady(disk, problem, r.Store.Base)
	if problem != nil {
		setUnknownRoom(disk)
	}
	if err := r.write(ctx, stored, disk); err != nil {
		return ctrl.Result{}, err
	}
	r.numbers.set(disk)
	return ctrl.Result{RequeueAfter: diskInterval}, nil
}

// identify finds out whether the disk is there that was accepted, or accepts one.
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

// checkPathIsFree refuses a folder that is another backend's, lies in one, or around
// one: the older keeps it.
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
			return fmt.Errorf("%w: %s and the path of backend %s, %s, lie in one another: use a path of its own",
				identity.ErrPathTaken, disk.Spec.Path, other.Spec.Backend, other.Spec.Path)
		}
	}
	return nil
}

// isOlder says which of two disks came first; names decide between those of one
// second.
func isOlder(a, b *stowagev1alpha1.NodeDisk) bool {
	if a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return a.Name < b.Name
	}
	return a.CreationTimestamp.Before(&b.CreationTimestamp)
}

// measure says what room the disk has.
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
	isOld := r.clock.Since(r.written[disk.Name]) >= room.CalmDown
	r.mu.Unlock()
	measured.Tell(&disk.Status, isOld)
	setRoom(disk, measured)
	return nil
}

// volumes lists all volumes of the node.
func (r *Reconciler) volumes(ctx context.Context) layout.Lister {
	return spec.Others(ctx, r.Client, r.NodeName, "")
}

// write writes the status, if it says something new, and tells of a new problem. The
// version keeps an identity from being written over by what was seen before it.
func (r *Reconciler) write(ctx context.Context, stored, disk *stowagev1alpha1.NodeDisk) error {
	if equality.Semantic.DeepEqual(stored.Status, disk.Status) {
		return nil
	}
	patch := client.MergeFromWithOptions(stored, client.MergeFromWithOptimisticLock{})
	if err := r.Client.Status().Patch(ctx, disk, patch); err != nil {
		return client.IgnoreNotFound(err)
	}
	r.mu.Lock()
	r.written[disk.Name] = r.clock.Now()
	r.mu.Unlock()
	for _, kind := range []string{stowagev1alpha1.ReadyCondition, stowagev1alpha1.HasRoomCondition} {
		now, before := meta.FindStatusCondition(disk.Status.Conditions, kind), meta.FindStatusCondition(stored.Status.Conditions, kind)
		if now.Status == "False" && (before == nil || before.Reason != now.Reason) {
			r.Events.Eventf(disk, nil, corev1.EventTypeWarning, now.Reason, "Looking", "%s", now.Message)
		}
	}
	return nil
}

func (r *Reconciler) forget(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.written, name)
	r.numbers.forget(name)
}

// SetupWithManager adds the reconciler to a manager.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	if err := r.numbers.register(r.Metrics); err != nil {
		return fmt.Errorf("registering the metrics of disks: %w", err)
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named("nodedisk").
		For(&stowagev1alpha1.NodeDisk{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&stowagev1alpha1.NodeVolume{}, r.measuredLater()).
		WithOptions(controller.Options{MaxConcurrentReconciles: diskWorkers}).
		Complete(r)
}
