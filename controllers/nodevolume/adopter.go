package nodevolume

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	"k8s.io/component-helpers/storage/volume"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/effect"
	stowageevent "github.com/stowage-dev/stowage/internal/event"
	"github.com/stowage-dev/stowage/internal/index"
	"github.com/stowage-dev/stowage/internal/liveread"
	"github.com/stowage-dev/stowage/internal/room"
	"github.com/stowage-dev/stowage/internal/wake"
	"github.com/stowage-dev/stowage/internal/wrap"
)

// Adopter recreates NodeVolumes that were deleted, if an agent finds the volume on its
// accepted disk and a PersistentVolume refers to it. It never removes anything, and never
// creates storage: a volume that is not on the disk becomes Lost.
type Adopter struct {
	client   client.Client
	live     client.Reader
	shared   liveread.Reads
	events   events.EventRecorder
	recorded stowageevent.Last
}

// NewAdopter makes the reconciler.
func NewAdopter(deps reconciler.Dependencies) *Adopter {
	return &Adopter{client: deps.Client, live: deps.Live, shared: deps.Reads, events: deps.Events}
}

// +kubebuilder:rbac:groups=stowage.dev,resources=nodevolumes,verbs=get;list;watch;create
// +kubebuilder:rbac:groups=stowage.dev,resources=nodedisks,verbs=list;watch
// +kubebuilder:rbac:groups=stowage.dev,resources=storagebackends,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=persistentvolumes;nodes,verbs=get;list;watch

// Reconcile recreates the NodeVolume of a PersistentVolume. The cache decides whether there
// is work to do, live reads decide what.
func (r *Adopter) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	cache := liveread.Uncopied(r.client)
	pv, err := liveread.Find(ctx, request.Name, &corev1.PersistentVolume{}, cache)
	if err != nil || pv == nil || !isLocal(pv) {
		r.recorded.Forget(request.NamespacedName)
		return ctrl.Result{}, err
	}
	recorded, err := liveread.Find(ctx, pv.Spec.CSI.VolumeHandle, &stowagev1alpha1.NodeVolume{}, cache)
	if err != nil || recorded != nil {
		return ctrl.Result{}, err
	}
	disk, err := r.diskWith(ctx, r.client, pv)
	if err == nil && disk != nil {
		err = r.adopt(ctx, pv)
	}
	if errors.Is(err, backend.Invalid) || errors.Is(err, backend.Conflict) {
		if r.recorded.IsNew(request.NamespacedName, err.Error()) {
			r.events.Eventf(pv, nil, corev1.EventTypeWarning, stowageevent.NodeVolumeNotAdopted, "Adopt", "its NodeVolume is gone and isn't created again: %v", err)
		}
		return ctrl.Result{}, nil
	}
	return ctrl.Result{}, err
}

// adopt creates the NodeVolume, if live reads confirm it. Its name is the volume's id, so of
// two leaders one creates it.
func (r *Adopter) adopt(ctx context.Context, cached *corev1.PersistentVolume) error {
	pv, err := liveread.Find(ctx, cached.Name, &corev1.PersistentVolume{}, r.live)
	if err != nil || pv == nil || pv.UID != cached.UID || !isLocal(pv) {
		return err
	}
	handle := pv.Spec.CSI.VolumeHandle
	if recorded, err := liveread.Find(ctx, handle, &stowagev1alpha1.NodeVolume{}, r.live); err != nil || recorded != nil {
		return err
	}
	if err := r.checkOnlyVolume(ctx, pv); err != nil {
		return err
	}
	disk, err := r.diskWith(ctx, r.live, pv)
	if err != nil || disk == nil {
		return err
	}
	found, _ := foundOn(disk, handle)
	created, err := nodeVolumeFor(pv, disk, found)
	if err != nil {
		return err
	}
	if err := r.allocateAsBackend(ctx, created); err != nil {
		return err
	}
	switch err := r.client.Create(ctx, created); {
	case apierrors.IsInvalid(err):
		return backend.Invalid.Errorf("creating NodeVolume %s: %w", created.Name, err)
	case apierrors.IsAlreadyExists(err):
		return nil
	case err != nil:
		return fmt.Errorf("creating NodeVolume %s: %w", created.Name, err)
	}
	r.events.Eventf(pv, nil, corev1.EventTypeNormal, stowageevent.NodeVolumeAdopted, "Adopt",
		"NodeVolume %s was gone and is created again: the volume is on the disk of node %s", created.Name, created.Spec.NodeName)
	return nil
}

// checkOnlyVolume refuses a volume that another PersistentVolume refers to, too: it is unknown
// which of the two reclaim policies applies to the data.
func (r *Adopter) checkOnlyVolume(ctx context.Context, pv *corev1.PersistentVolume) error {
	volumes, err := r.shared.Handles.Get(ctx, index.HandleOf(pv)[0])
	if err != nil {
		return err
	}
	if other := volumes.Beside(pv); other != "" {
		return backend.Conflict.Errorf("PersistentVolume %s has the volumeHandle %s, too: delete one of the two", other, pv.Spec.CSI.VolumeHandle)
	}
	return nil
}

// diskWith returns the disk on which a volume was found, of a node that the
// PersistentVolume allows, or nil.
func (r *Adopter) diskWith(ctx context.Context, reader client.Reader, pv *corev1.PersistentVolume) (*stowagev1alpha1.NodeDisk, error) {
	disks := &stowagev1alpha1.NodeDiskList{}
	if err := reader.List(ctx, disks, client.MatchingLabels{stowagev1alpha1.BackendLabel: index.BackendOf(pv)[0]}); err != nil {
		return nil, fmt.Errorf("listing the disks of backend %s: %w", index.BackendOf(pv)[0], err)
	}
	var with *stowagev1alpha1.NodeDisk
	for i := range disks.Items {
		disk := &disks.Items[i]
		if _, found := foundOn(disk, pv.Spec.CSI.VolumeHandle); !found || disk.Spec.Backend != index.BackendOf(pv)[0] {
			continue
		}
		node, err := liveread.Find(ctx, disk.Spec.NodeName, &corev1.Node{}, reader)
		if err != nil {
			return nil, fmt.Errorf("reading node %s: %w", disk.Spec.NodeName, err)
		}
		if node == nil || volume.CheckNodeAffinity(pv, node.Labels) != nil {
			continue
		}
		if with != nil {
			return nil, backend.Conflict.Errorf("it was found on node %s and on node %s, and spec.nodeAffinity allows both: name one",
				with.Spec.NodeName, disk.Spec.NodeName)
		}
		with = disk
	}
	return with, nil
}

// allocateAsBackend sets the allocation of an image to that of its backend: neither the
// PersistentVolume nor the disk records the original one.
func (r *Adopter) allocateAsBackend(ctx context.Context, created *stowagev1alpha1.NodeVolume) error {
	if created.Spec.Layout != stowagev1alpha1.LayoutImage {
		return nil
	}
	object, err := liveread.Find(ctx, created.Spec.Backend, &stowagev1alpha1.StorageBackend{}, r.client)
	if err == nil && object != nil && object.Spec.Local != nil {
		created.Spec.Allocation = object.Spec.Local.Allocation
	}
	return wrap.Error(err, "reading StorageBackend %s", created.Spec.Backend)
}

// SetupWithManager watches PersistentVolumes, and what agents find on their disks.
func (r *Adopter) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("nodevolume-adoption").
		For(&corev1.PersistentVolume{}, builder.WithPredicates(onlyLocal)).
		Watches(&stowagev1alpha1.NodeDisk{}, handler.EnqueueRequestsFromMapFunc(r.VolumesFoundOn), onlyNewFinds()).
		Complete(effect.Reported[ctrl.Request](r))
}

// onlyLocal passes volumes of local disks, and those whose spec changed: it decides where a volume may lie. All get a phase, too.
var onlyLocal = predicate.And(
	predicate.NewPredicateFuncs(func(object client.Object) bool { return isLocal(object.(*corev1.PersistentVolume)) }),
	predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, now := e.ObjectOld.(*corev1.PersistentVolume), e.ObjectNew.(*corev1.PersistentVolume)
		return before.UID != now.UID || !equality.Semantic.DeepEqual(before.Spec, now.Spec)
	}},
)

// VolumesFoundOn returns those PersistentVolumes of a disk's backend that the disk may store.
func (r *Adopter) VolumesFoundOn(ctx context.Context, object client.Object) []reconcile.Request {
	disk := object.(*stowagev1alpha1.NodeDisk)
	if disk.Status.Unrecorded == nil || disk.Status.Unrecorded.Count == 0 {
		return nil
	}
	volumes := &corev1.PersistentVolumeList{}
	if err := r.client.List(ctx, volumes, client.MatchingFields{index.VolumesByBackend: disk.Spec.Backend}, wake.Unhurried, client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "listing the volumes of a backend")
	}
	var requests []reconcile.Request
	for i := range volumes.Items {
		pv := &volumes.Items[i]
		if !isLocal(pv) {
			continue
		}
		if _, found := foundOn(disk, pv.Spec.CSI.VolumeHandle); found {
			requests = append(requests, wake.Request(pv))
		}
	}
	return requests
}

// onlyNewFinds passes disks on which other volumes were found, and those that become Ready.
func onlyNewFinds() builder.WatchesOption {
	return builder.WithPredicates(predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, now := e.ObjectOld.(*stowagev1alpha1.NodeDisk), e.ObjectNew.(*stowagev1alpha1.NodeDisk)
		return room.IsReady(now) && (!room.IsReady(before) || !equality.Semantic.DeepEqual(before.Status.Unrecorded, now.Status.Unrecorded) ||
			!equality.Semantic.DeepEqual(before.Status.Identity, now.Status.Identity))
	}})
}
