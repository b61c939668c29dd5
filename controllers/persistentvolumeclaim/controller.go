// Package persistentvolumeclaim is the reconciler of PersistentVolumeClaims. It matches a
// claim with a volume, ties the two together, and provisions a volume from a backend if none
// fits. It expands bound claims, and protects claims that pods use.
//
// It writes claims, their status, and the claimRef, finalizers and phase of volumes. Before it
// calls a backend, it writes the pending operation to the claim. Before a claim is released,
// it removes what that operation created. It never deletes a PersistentVolume, and never
// mounts. The index of volumes in internal/binder decides what fits.
package persistentvolumeclaim

import (
	"cmp"
	"context"
	"fmt"
	"slices"

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
	"github.com/stowage-dev/stowage/controllers/persistentvolumeclaim/binding"
	"github.com/stowage-dev/stowage/controllers/persistentvolumeclaim/expansion"
	"github.com/stowage-dev/stowage/controllers/persistentvolumeclaim/protection"
	"github.com/stowage-dev/stowage/controllers/persistentvolumeclaim/provisioning"
	"github.com/stowage-dev/stowage/controllers/persistentvolumeclaim/step"
	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/binder"
	"github.com/stowage-dev/stowage/internal/event"
	"github.com/stowage-dev/stowage/internal/index"
	"github.com/stowage-dev/stowage/internal/opener"
	"github.com/stowage-dev/stowage/internal/room"
	"github.com/stowage-dev/stowage/internal/storageclass"
	"github.com/stowage-dev/stowage/internal/uses"
	"github.com/stowage-dev/stowage/internal/wake"
)

// Reconciler brings claims as far as possible. Binder, Provisioner, Expander and Protector
// have the steps; the reconciler has their order, and records why a claim waits.
type Reconciler struct {
	client  client.Client
	scope   reconciler.Scope
	storage *opener.Opener
	// Index has the volumes and the pending claims. SetupWithManager connects an informer that
	// fills it.
	Index   *binder.Index
	waking  wake.Source
	refresh refresh
	// patience limits the wait for backends that are at work.
	patience patience
	events   events.EventRecorder
	recorded event.Last
	// rooms wakes the claims of a backend after its disks got more free space.
	rooms wake.Rounds

	protector   *protection.Protector
	binder      *binding.Binder
	provisioner *provisioning.Provisioner
	expander    *expansion.Expander
}

// New makes a reconciler with an empty index.
func New(deps reconciler.Dependencies) *Reconciler {
	r := &Reconciler{
		client:    deps.Client,
		scope:     deps.Scope,
		storage:   deps.Storage,
		refresh:   refresh{clock: deps.Clock},
		patience:  patience{clock: deps.Clock, lasts: deps.Patience},
		rooms:     wake.Rounds{Clock: clock.RealClock{}, Each: roomEach, Rest: roomRest},
		events:    deps.Events,
		protector: protection.New(deps),
	}
	r.Index = binder.NewIndex(r.waking.Add)
	r.binder = binding.New(deps, r.Index, r.protector)
	r.provisioner = provisioning.New(deps, provisioning.Parts{
		Index: r.Index, Open: r.openFor, UntilRefresh: r.refresh.left, Binder: r.binder, Protector: r.protector,
	})
	r.expander = expansion.New(deps, r.openFor)
	return r
}

// +kubebuilder:rbac:groups="",resources=persistentvolumeclaims,verbs=get;list;watch;update;patch
// +kubebuilder:rbac:groups="",resources=persistentvolumeclaims/status,verbs=update;patch
// +kubebuilder:rbac:groups="",resources=persistentvolumeclaims/finalizers,verbs=update
// +kubebuilder:rbac:groups="",resources=persistentvolumes,verbs=get;list;watch;create;update;patch;delete
// +kubebuilder:rbac:groups="",resources=persistentvolumes/status,verbs=update;patch
// +kubebuilder:rbac:groups="",resources=pods;nodes,verbs=get;list;watch
// +kubebuilder:rbac:groups=storage.k8s.io,resources=storageclasses,verbs=get;list;watch
// +kubebuilder:rbac:groups=stowage.dev,resources=storagebackends,verbs=get;list;watch
// +kubebuilder:rbac:groups=stowage.dev,resources=nodevolumes,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="";events.k8s.io,resources=events,verbs=create;patch;update

// Reconcile brings one claim as far as it can go now.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	claim := &corev1.PersistentVolumeClaim{}
	scope := &step.Scope{Claim: claim, Wish: binder.Wish{Claim: claim}}
	// A tentative reservation that the claim did not use goes to the next claim.
	defer func() {
		if !scope.Asked {
			r.Index.Leave(request.NamespacedName)
		}
	}()
	if err := r.client.Get(ctx, request.NamespacedName, claim); err != nil {
		r.recorded.Forget(request.NamespacedName)
		r.binder.Forget(request.NamespacedName)
		r.patience.forget(request.NamespacedName)
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	for _, bringFurther := range r.steps(claim) {
		waiting, err := bringFurther(ctx, scope)
		switch {
		case apierrors.IsConflict(err):
			return ctrl.Result{RequeueAfter: wake.AfterConflict}, nil
		case err != nil:
			return ctrl.Result{}, err
		case waiting != nil:
			return r.tell(ctx, claim, waiting)
		}
	}
	r.patience.forget(request.NamespacedName)
	return ctrl.Result{}, nil
}

// steps are the steps for a claim, in order. In scope=classes kube-controller-manager matches,
// binds and protects; Stowage provisions on its request.
func (r *Reconciler) steps(claim *corev1.PersistentVolumeClaim) []step.Func {
	switch {
	case !claim.DeletionTimestamp.IsZero() && r.scope == reconciler.ClusterScope:
		return []step.Func{r.binder.HoldVolume, r.protector.AwaitUnused, r.provisioner.SettleProvisioning, r.provisioner.RemoveFinalizers}
	case !claim.DeletionTimestamp.IsZero():
		return []step.Func{r.provisioner.SettleProvisioning, r.provisioner.RemoveFinalizers}
	case r.scope == reconciler.ClassesScope && claim.Spec.VolumeName != "":
		return []step.Func{r.provisioner.SettleProvisioning, r.provisioner.RemoveFinalizers, r.expander.Expand}
	case r.scope == reconciler.ClassesScope:
		return []step.Func{
			r.provisioner.AwaitProvisionRequest, r.provisioner.FindMadeVolume, r.findClass, r.findNode, r.provisioner.Provision, r.provisioner.SettleProvisioning, r.provisioner.RemoveFinalizers,
		}
	case binder.Completed(claim):
		return []step.Func{r.protector.EnsureProtected, r.ensureMigrated, r.binder.FindBoundVolume, r.binder.Bind, r.provisioner.SettleProvisioning, r.provisioner.RemoveFinalizers, r.expander.Expand}
	default:
		return []step.Func{
			r.protector.EnsureProtected, r.ensureMigrated, r.findClass, r.findNode, r.binder.FindVolume, r.binder.TellMismatches, r.assignDefaultClass, r.provisioner.Provision, r.binder.Bind,
		}
	}
}

// findNode looks up the node of the claim's first consumer, for classes that wait for it. The
// scheduler chose it, or the pod was created with a node name, which no scheduler sees.
func (r *Reconciler) findNode(ctx context.Context, scope *step.Scope) (*step.Wait, error) {
	if !storageclass.WaitsForConsumer(scope.Class) {
		return nil, nil
	}
	name, placed, err := r.selectedNode(ctx, scope.Claim)
	if err != nil {
		return nil, err
	}
	if name == "" {
		scope.Wish.Delayed = true
		return nil, nil
	}
	// The scheduler writes the annotation if no existing volume suits the pod.
	scope.Wish.Provisioning = scope.Claim.Annotations[step.AnnSelectedNode] != "" && scope.Class.Provisioner != provisioning.NoProvisioner
	node := &corev1.Node{}
	if err := r.client.Get(ctx, client.ObjectKey{Name: name}, node); err != nil {
		if apierrors.IsNotFound(err) {
			return r.provisioner.LeaveMissingNode(ctx, scope, name, placed)
		}
		return nil, fmt.Errorf("reading node %s: %w", name, err)
	}
	scope.Wish.Node = node
	return nil, nil
}

// selectedNode returns the node of the claim's pod, and what chose it.
func (r *Reconciler) selectedNode(ctx context.Context, claim *corev1.PersistentVolumeClaim) (name, by string, err error) {
	if node := claim.Annotations[step.AnnSelectedNode]; node != "" {
		return node, "the scheduler", nil
	}
	pods := &corev1.PodList{}
	if err := r.client.List(ctx, pods, client.InNamespace(claim.Namespace), client.MatchingFields{index.PodsByClaim: claim.Name}); err != nil {
		return "", "", fmt.Errorf("listing the pods of claim %s/%s: %w", claim.Namespace, claim.Name, err)
	}
	placed := slices.DeleteFunc(pods.Items, func(pod corev1.Pod) bool {
		return pod.Spec.NodeName == "" || uses.IsFinished(&pod) || !pod.DeletionTimestamp.IsZero()
	})
	slices.SortFunc(placed, func(a, b corev1.Pod) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	for _, pod := range placed {
		// One pod on a missing node must not block the others.
		if name, by = pod.Spec.NodeName, "pod "+pod.Name; r.client.Get(ctx, client.ObjectKey{Name: name}, &corev1.Node{}) == nil {
			break
		}
	}
	return name, by, nil
}

// SetupWithManager watches claims and everything that a claim may wait for.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("persistentvolumeclaim").
		Watches(&corev1.PersistentVolumeClaim{}, r.ClaimEvents()).
		Watches(&corev1.PersistentVolumeClaim{}, handler.EnqueueRequestsFromMapFunc(r.provisioner.ClaimsCopying), builder.WithPredicates(provisioning.NewPhases)).
		Watches(&corev1.PersistentVolume{}, r.VolumeEvents()).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(claimsOfPod), builder.WithPredicates(uses.OnlyNew)).
		Watches(&storagev1.StorageClass{}, handler.EnqueueRequestsFromMapFunc(r.claimsWaitingForClass)).
		Watches(&stowagev1alpha1.StorageBackend{}, handler.EnqueueRequestsFromMapFunc(r.claimsWaitingForBackend), onlyUsableBackends()).
		Watches(&stowagev1alpha1.NodeVolume{}, handler.EnqueueRequestsFromMapFunc(r.ClaimOfNodeVolume)).
		Watches(&stowagev1alpha1.NodeDisk{}, r.diskEvents(), room.OnlyMore()).
		Watches(&corev1.Node{}, handler.EnqueueRequestsFromMapFunc(r.claimsWaitingForNode), onlyNewNodes()).
		Watches(&corev1.Node{}, handler.EnqueueRequestsFromMapFunc(r.provisioner.ClaimsPlacedOn), builder.WithPredicates(provisioning.GoneNodes)).
		WatchesRawSource(source.Func(r.waking.Start)).
		WithOptions(controller.Options{MaxConcurrentReconciles: claimWorkers}).
		Complete(r)
}

// openFor opens a backend for calls that a claim waits for.
func (r *Reconciler) openFor(claim *corev1.PersistentVolumeClaim, object *stowagev1alpha1.StorageBackend) (backend.Backend, error) {
	key := client.ObjectKeyFromObject(claim)
	return r.storage.Open(object, func() { r.waking.Add(key) })
}

// claimWorkers is the number of concurrent reconciles: a bind mostly waits for the API server.
const claimWorkers = 32
