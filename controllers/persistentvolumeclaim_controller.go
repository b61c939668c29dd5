package controllers

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/stowage-dev/stowage/internal/backend"

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
	"github.com/stowage-dev/stowage/internal/binder"
	"github.com/stowage-dev/stowage/internal/wake"
)

// PersistentVolumeClaimReconciler finds or makes a volume for every claim and
// ties the two together, and protects claims from deletion while they are used.
type PersistentVolumeClaimReconciler struct {
	client  client.Client
	live    client.Reader
	shared  liveReads
	scope   Scope
	storage *storage
	index   *binder.Index
	waking  waking
	refresh refresh
	// patience is with backends that are at work.
	patience patience
	events   events.EventRecorder
	told     told
	// rooms wakes the claims of a backend whose disks have more room.
	rooms wake.Rounds
	// mismatches are what was last told of volumes that a controller tied to a claim.
	mismatches told
}

// NewPersistentVolumeClaimReconciler makes a reconciler with an empty index of
// volumes: SetupWithManager has an informer fill it.
func NewPersistentVolumeClaimReconciler(deps Dependencies) *PersistentVolumeClaimReconciler {
	r := &PersistentVolumeClaimReconciler{
		client:   deps.Client,
		live:     deps.Live,
		shared:   deps.Reads,
		scope:    deps.Scope,
		storage:  deps.Storage,
		refresh:  refresh{clock: deps.Clock},
		patience: patience{clock: deps.Clock, lasts: deps.Patience},
		rooms:    wake.Rounds{Clock: clock.RealClock{}, Each: roomEach, Rest: roomRest},
		events:   deps.Events,
	}
	r.index = binder.NewIndex(r.waking.add)
	return r
}

// claimScope is what the steps of one pass over a claim know and find out.
type claimScope struct {
	claim  *corev1.PersistentVolumeClaim
	class  *storagev1.StorageClass
	wish   binder.Wish
	volume *corev1.PersistentVolume
	// asked tells that the index was asked for a volume.
	asked bool
}

// claimStep brings a claim further. It returns a wait where it can't go on yet,
// and nil where the next step may run.
type claimStep func(context.Context, *claimScope) (*wait, error)

// +kubebuilder:rbac:groups="",resources=persistentvolumeclaims,verbs=get;list;watch;update;patch
// +kubebuilder:rbac:groups="",resources=persistentvolumeclaims/status,verbs=update;patch
// +kubebuilder:rbac:groups="",resources=persistentvolumeclaims/finalizers,verbs=update
// +kubebuilder:rbac:groups="",resources=persistentvolumes,verbs=get;list;watch;create;update;patch;delete
// +kubebuilder:rbac:groups="",resources=persistentvolumes/status,verbs=update;patch
// +kubebuilder:rbac:groups="",resources=pods;nodes,verbs=get;list;watch
// +kubebuilder:rbac:groups=storage.k8s.io,resources=storageclasses,verbs=get;list;watch
// +kubebuilder:rbac:groups=stowage.dev,resources=storagebackends,verbs=get;list;watch
// +kubebuilder:rbac:groups=stowage.dev,resources=localvolumes,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="";events.k8s.io,resources=events,verbs=create;patch;update

// Reconcile brings one claim as far as it can go now.
func (r *PersistentVolumeClaimReconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	claim := &corev1.PersistentVolumeClaim{}
	scope := &claimScope{claim: claim, wish: binder.Wish{Claim: claim}}
	// What the index keeps for a claim that doesn't come for it goes to the next.
	defer func() {
		if !scope.asked {
			r.index.Leave(request.NamespacedName)
		}
	}()
	if err := r.client.Get(ctx, request.NamespacedName, claim); err != nil {
		r.told.forget(request.NamespacedName)
		r.mismatches.forget(request.NamespacedName)
		r.patience.forget(request.NamespacedName)
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	for _, step := range r.steps(claim) {
		waiting, err := step(ctx, scope)
		switch {
		case apierrors.IsConflict(err):
			return ctrl.Result{RequeueAfter: conflictRetry}, nil
		case err != nil:
			return ctrl.Result{}, err
		case waiting != nil:
			return r.tell(ctx, claim, waiting)
		}
	}
	r.patience.forget(request.NamespacedName)
	return ctrl.Result{}, nil
}

// steps are what a claim needs, in order. In scope=classes kube-controller-manager
// matches, binds and protects; Stowage provisions what it is told to.
func (r *PersistentVolumeClaimReconciler) steps(claim *corev1.PersistentVolumeClaim) []claimStep {
	switch {
	case !claim.DeletionTimestamp.IsZero() && r.scope == ClusterScope:
		return []claimStep{r.holdVolume, r.awaitUnused, r.settleProvisioning, r.removeFinalizers}
	case !claim.DeletionTimestamp.IsZero():
		return []claimStep{r.settleProvisioning, r.removeFinalizers}
	case r.scope == ClassesScope && claim.Spec.VolumeName != "":
		return []claimStep{r.settleProvisioning, r.removeFinalizers, r.expand}
	case r.scope == ClassesScope:
		return []claimStep{
			r.awaitProvisionRequest, r.findMadeVolume, r.findClass, r.findNode, r.provision, r.settleProvisioning, r.removeFinalizers,
		}
	case binder.Completed(claim):
		return []claimStep{r.ensureProtected, r.ensureMigrated, r.findBoundVolume, r.bind, r.settleProvisioning, r.removeFinalizers, r.expand}
	default:
		return []claimStep{
			r.ensureProtected, r.ensureMigrated, r.findClass, r.findNode, r.findVolume, r.tellMismatches, r.assignDefaultClass, r.provision, r.bind,
		}
	}
}

// findNode looks up the node on which the claim's first consumer was placed, for
// classes that wait for it: by the scheduler, or by whoever wrote the node's name
// into the pod, of which no scheduler hears.
func (r *PersistentVolumeClaimReconciler) findNode(ctx context.Context, scope *claimScope) (*wait, error) {
	if !waitsForConsumer(scope.class) {
		return nil, nil
	}
	name, placed, err := r.selectedNode(ctx, scope.claim)
	if err != nil {
		return nil, err
	}
	if name == "" {
		scope.wish.Delayed = true
		return nil, nil
	}
	// The scheduler writes the annotation where no volume that exists suits the pod.
	scope.wish.Provisioning = scope.claim.Annotations[annSelectedNode] != "" && scope.class.Provisioner != noProvisioner
	node := &corev1.Node{}
	if err := r.client.Get(ctx, client.ObjectKey{Name: name}, node); err != nil {
		if apierrors.IsNotFound(err) {
			return r.leaveMissingNode(ctx, scope, name, placed)
		}
		return nil, fmt.Errorf("reading node %s: %w", name, err)
	}
	scope.wish.Node = node
	return nil, nil
}

// findVolume takes the volume that the claim names, or the best that fits.
func (r *PersistentVolumeClaimReconciler) findVolume(_ context.Context, scope *claimScope) (*wait, error) {
	claim := scope.claim
	scope.asked = true
	if claim.Spec.VolumeName == "" {
		if taken := r.index.Take(scope.wish); taken != nil && !isUndone(taken, claim) {
			scope.volume = taken
		}
		return nil, nil
	}
	found, cause := r.index.TakeNamed(scope.wish)
	switch {
	case cause != binder.Fits:
		return waitForNamedVolume(claim, cause), nil
	case found == nil:
		return waitForMissingVolume(claim), nil
	}
	scope.volume = found
	return nil, nil
}

// selectedNode is the node that the claim's pod was placed on, and by whom.
func (r *PersistentVolumeClaimReconciler) selectedNode(ctx context.Context, claim *corev1.PersistentVolumeClaim) (name, by string, err error) {
	if node := claim.Annotations[annSelectedNode]; node != "" {
		return node, "the scheduler", nil
	}
	pods := &corev1.PodList{}
	if err := r.client.List(ctx, pods, client.InNamespace(claim.Namespace), client.MatchingFields{podsByClaim: claim.Name}); err != nil {
		return "", "", fmt.Errorf("listing the pods of claim %s/%s: %w", claim.Namespace, claim.Name, err)
	}
	placed := slices.DeleteFunc(pods.Items, func(pod corev1.Pod) bool {
		return pod.Spec.NodeName == "" || isFinished(&pod) || !pod.DeletionTimestamp.IsZero()
	})
	slices.SortFunc(placed, func(a, b corev1.Pod) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	for _, pod := range placed {
		// One pod on a node that isn't there doesn't hold up the others.
		if name, by = pod.Spec.NodeName, "pod "+pod.Name; r.client.Get(ctx, client.ObjectKey{Name: name}, &corev1.Node{}) == nil {
			break
		}
	}
	return name, by, nil
}

// SetupWithManager watches claims and all that may bring one further.
func (r *PersistentVolumeClaimReconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("persistentvolumeclaim").
		Watches(&corev1.PersistentVolumeClaim{}, r.claimEvents()).
		Watches(&corev1.PersistentVolumeClaim{}, handler.EnqueueRequestsFromMapFunc(r.claimsCopying), builder.WithPredicates(newPhases)).
		Watches(&corev1.PersistentVolume{}, r.volumeEvents()).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(claimsOfPod), builder.WithPredicates(newUse)).
		Watches(&storagev1.StorageClass{}, handler.EnqueueRequestsFromMapFunc(r.claimsWaitingForClass)).
		Watches(&stowagev1alpha1.StorageBackend{}, handler.EnqueueRequestsFromMapFunc(r.claimsWaitingForBackend), onlyUsableBackends()).
		Watches(&stowagev1alpha1.LocalVolume{}, handler.EnqueueRequestsFromMapFunc(r.claimOfLocalVolume)).
		Watches(&stowagev1alpha1.LocalDisk{}, r.diskEvents(), onlyMoreRoom()).
		Watches(&corev1.Node{}, handler.EnqueueRequestsFromMapFunc(r.claimsWaitingForNode), onlyNewNodes()).
		Watches(&corev1.Node{}, handler.EnqueueRequestsFromMapFunc(r.claimsPlacedOn), builder.WithPredicates(goneNodes)).
		WatchesRawSource(source.Func(r.waking.start)).
		WithOptions(controller.Options{MaxConcurrentReconciles: claimWorkers}).
		Complete(r)
}

// openFor opens a backend for calls that a claim waits for.
func (r *PersistentVolumeClaimReconciler) openFor(claim *corev1.PersistentVolumeClaim, object *stowagev1alpha1.StorageBackend) (backend.Backend, error) {
	key := client.ObjectKeyFromObject(claim)
	return r.storage.open(object, func() { r.waking.add(key) })
}

// claimWorkers is how many claims are worked on at once: most of the time
// of a bind is waiting for the API server.
const claimWorkers = 32
