package nodevolume

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/internal/effect"
	"github.com/stowage-dev/stowage/internal/index"
	"github.com/stowage-dev/stowage/internal/liveread"
	"github.com/stowage-dev/stowage/internal/patch"
	"github.com/stowage-dev/stowage/internal/room"
	"github.com/stowage-dev/stowage/internal/wake"
	"github.com/stowage-dev/stowage/internal/wrap"
)

// diskWorkers is the number of concurrent reconciles.
const diskWorkers = 8

// DiskReconciler keeps a NodeDisk for every node of every local backend, and publishes the
// free space that the nodes' agents report, for the scheduler. Its requests name a backend
// and, as namespace, a node.
type DiskReconciler struct {
	client client.Client
	live   client.Reader
	pairs
	capacities capacities
}

// NewDiskReconciler makes the reconciler.
func NewDiskReconciler(deps reconciler.Dependencies) *DiskReconciler {
	return &DiskReconciler{
		client: deps.Client, live: deps.Live,
		pairs:      pairs{client: deps.Client, namespace: deps.Namespace},
		capacities: capacities{client: deps.Client, namespace: deps.Namespace},
	}
}

// +kubebuilder:rbac:groups=stowage.dev,resources=nodedisks,verbs=list;watch;create;patch;delete
// +kubebuilder:rbac:groups=stowage.dev,resources=nodedisks/finalizers,verbs=update
// +kubebuilder:rbac:groups=stowage.dev,resources=storagebackends;nodevolumes,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=nodes,verbs=get;list;watch
// +kubebuilder:rbac:groups=storage.k8s.io,resources=storageclasses,verbs=list;watch
// +kubebuilder:rbac:groups=storage.k8s.io,resources=csistoragecapacities,verbs=list;watch;create;patch;delete,namespace=stowage-system

// Reconcile creates, updates or removes one backend's disk on one node.
func (r *DiskReconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	pair, err := r.read(ctx, r.client, request)
	if err != nil {
		return ctrl.Result{}, err
	}
	switch {
	case pair.belongs() && pair.disk == nil:
		err = r.create(ctx, pair)
	case pair.disk != nil && !pair.belongs() && !pair.inUse:
		err = r.remove(ctx, pair, request)
	case pair.belongs():
		err = r.update(ctx, pair)
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, r.capacities.publish(ctx, pair)
}

func (r *DiskReconciler) read(ctx context.Context, reader client.Reader, request ctrl.Request) (*pair, error) {
	p := &pair{name: NodeDiskName(request.Name, request.Namespace)}
	var err error
	if p.object, err = liveread.Find(ctx, request.Name, &stowagev1alpha1.StorageBackend{}, reader); err != nil {
		return nil, err
	}
	if p.node, err = liveread.Find(ctx, request.Namespace, &corev1.Node{}, reader); err != nil {
		return nil, err
	}
	if p.disk, err = liveread.Find(ctx, p.name, &stowagev1alpha1.NodeDisk{}, r.client); err != nil {
		return nil, err
	}
	volumes := &stowagev1alpha1.NodeVolumeList{}
	if err := r.client.List(ctx, volumes, client.MatchingFields{index.VolumesByNode: request.Namespace}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the volumes of node %s: %w", request.Namespace, err)
	}
	for i := range volumes.Items {
		p.inUse = p.inUse || volumes.Items[i].Spec.Backend == request.Name
	}
	return p, nil
}

func (r *DiskReconciler) create(ctx context.Context, p *pair) error {
	disk := &stowagev1alpha1.NodeDisk{
		ObjectMeta: metav1.ObjectMeta{Name: p.name, Labels: map[string]string{stowagev1alpha1.BackendLabel: p.object.Name}},
		Spec: stowagev1alpha1.NodeDiskSpec{
			NodeName: p.node.Name, Backend: p.object.Name, Path: p.object.Spec.Local.Path,
			ReservedCapacity: p.object.Spec.Local.ReservedCapacity,
		},
	}
	if err := controllerutil.SetControllerReference(p.object, disk, r.client.Scheme()); err != nil {
		return fmt.Errorf("owning NodeDisk %s: %w", p.name, err)
	}
	return wrap.Error(client.IgnoreAlreadyExists(r.client.Create(ctx, disk)), "creating NodeDisk %s", p.name)
}

// update copies the backend's settings to the disk. It clears Replaces if the replaced
// disk is in use after all. Otherwise, the next time that this disk is not mounted, anything in
// its place would count as its successor.
func (r *DiskReconciler) update(ctx context.Context, p *pair) error {
	before := p.disk.DeepCopy()
	p.disk.Spec.ReservedCapacity = p.object.Spec.Local.ReservedCapacity
	if identity := p.disk.Status.Identity; room.IsReady(p.disk) && identity != nil && identity.ID == p.disk.Spec.Replaces {
		p.disk.Spec.Replaces = ""
	}
	if equality.Semantic.DeepEqual(before.Spec, p.disk.Spec) {
		return nil
	}
	err := r.client.Patch(ctx, p.disk, patch.Fenced(before))
	return wrap.Error(client.IgnoreNotFound(err), "updating NodeDisk %s", p.name)
}

// remove deletes the disk of a node that left the backend, after a live read. Without the
// object, nothing distinguishes an unmounted disk from an empty one.
func (r *DiskReconciler) remove(ctx context.Context, p *pair, request ctrl.Request) error {
	now, err := r.read(ctx, r.live, request)
	if err != nil || now.belongs() || now.inUse {
		return err
	}
	err = r.client.Delete(ctx, p.disk, client.Preconditions{UID: &p.disk.UID})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting NodeDisk %s: %w", p.name, err)
	}
	p.disk = nil
	return nil
}

// SetupWithManager watches what a disk depends on.
func (r *DiskReconciler) SetupWithManager(mgr ctrl.Manager) error {
	controlled := ctrl.NewControllerManagedBy(mgr).
		Named("nodedisk").
		Watches(&stowagev1alpha1.NodeDisk{}, handler.EnqueueRequestsFromMapFunc(PairOfDisk)).
		Watches(&stowagev1alpha1.StorageBackend{}, handler.EnqueueRequestsFromMapFunc(r.PairsOfBackend), wake.OnlyNewSpecs()).
		Watches(&corev1.Node{}, handler.EnqueueRequestsFromMapFunc(r.pairsOfNode), wake.OnlyNodeLabels()).
		Watches(&stowagev1alpha1.NodeVolume{}, handler.EnqueueRequestsFromMapFunc(pairOfNodeVolume), onlyDeletions()).
		Watches(&storagev1.StorageClass{}, handler.EnqueueRequestsFromMapFunc(r.pairsOfClass)).
		WithOptions(controller.Options{MaxConcurrentReconciles: diskWorkers})
	if r.namespace != "" {
		controlled = controlled.Watches(&storagev1.CSIStorageCapacity{}, handler.EnqueueRequestsFromMapFunc(r.PairOfCapacity))
	}
	return controlled.Complete(effect.Reported[ctrl.Request](r))
}

// onlyDeletions passes deleted objects.
func onlyDeletions() builder.WatchesOption {
	return builder.WithPredicates(predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(event.UpdateEvent) bool { return false },
	})
}
