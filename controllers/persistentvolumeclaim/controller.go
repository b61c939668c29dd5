// Package persistentvolumeclaim is the reconciler of PersistentVolumeClaims. It matches a
// claim with a volume, ties the two together, and provisions a volume from a backend if none
// fits. It expands bound claims, changes their attributes, and protects claims that pods use.
//
// It writes claims, their status, and the claimRef, finalizers and phase of volumes. Before it
// calls a backend, it writes the pending operation to the claim. Before a claim is released,
// it removes what that operation created. It never deletes a PersistentVolume, and never
// mounts. The index of volumes in internal/binder decides what fits.
package persistentvolumeclaim

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/controllers/persistentvolumeclaim/datasource"
	"github.com/stowage-dev/stowage/controllers/persistentvolumeclaim/step"
	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/internal/backlog"
	"github.com/stowage-dev/stowage/internal/binder"
	"github.com/stowage-dev/stowage/internal/effect"
	"github.com/stowage-dev/stowage/internal/room"
	"github.com/stowage-dev/stowage/internal/uses"
	"github.com/stowage-dev/stowage/internal/wake"
	"github.com/stowage-dev/stowage/internal/workers"
)

// +kubebuilder:rbac:groups="",resources=persistentvolumeclaims,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups="",resources=persistentvolumeclaims/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=persistentvolumes,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=persistentvolumes/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=pods,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=nodes,verbs=get;list;watch
// +kubebuilder:rbac:groups=storage.k8s.io,resources=storageclasses,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=storage.k8s.io,resources=volumeattributesclasses,verbs=get
// +kubebuilder:rbac:groups=snapshot.storage.k8s.io,resources=volumesnapshots;volumesnapshotcontents,verbs=get;list;watch
// +kubebuilder:rbac:groups=gateway.networking.k8s.io,resources=referencegrants,verbs=list
// +kubebuilder:rbac:groups=stowage.dev,resources=storagebackends,verbs=get;list;watch
// +kubebuilder:rbac:groups=stowage.dev,resources=nodevolumes,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Reconcile brings one claim as far as it can go now.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	claim := &corev1.PersistentVolumeClaim{}
	scope := &step.Scope{Claim: claim, Request: binder.ClaimRequest{Claim: claim}}
	// A tentative reservation that the claim did not use goes to the next claim.
	defer func() {
		if !scope.Searched {
			r.Index.RemovePending(request.NamespacedName)
		}
	}()
	if err := r.client.Get(ctx, request.NamespacedName, claim); err != nil {
		r.recorded.Forget(request.NamespacedName)
		r.binder.Forget(request.NamespacedName)
		r.patience.forget(request.NamespacedName)
		r.waiting.Forget(request.NamespacedName)
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	isDeleted := !claim.DeletionTimestamp.IsZero()
	for _, run := range r.steps(claim) {
		waiting, err := run(ctx, scope)
		switch {
		case err != nil:
			return reconciler.AfterConflict(ctrl.Result{}, err)
		case waiting != nil:
			r.count(claim, waiting)
			return r.report(ctx, claim, waiting)
		case isDeleted == claim.DeletionTimestamp.IsZero():
			// The answer of a write shows a deletion. These are the steps of a living claim: they would
			// remove the finalizers though a pod uses it. The deletion wakes the claim.
			return ctrl.Result{}, nil
		}
	}
	r.patience.forget(request.NamespacedName)
	r.waiting.Forget(request.NamespacedName)
	return ctrl.Result{}, nil
}

// steps are the steps for a claim, in order. In scope=classes kube-controller-manager matches,
// binds and protects; Stowage provisions on its request.
func (r *Reconciler) steps(claim *corev1.PersistentVolumeClaim) []step.Func {
	switch {
	case !claim.DeletionTimestamp.IsZero() && r.scope == reconciler.ClusterScope:
		return []step.Func{r.binder.HoldVolume, r.protector.AwaitUnused, r.provisioner.SettleProvisioning, r.provisioner.RemoveFinalizers, r.sources.Release}
	case !claim.DeletionTimestamp.IsZero():
		return []step.Func{r.provisioner.SettleProvisioning, r.provisioner.RemoveFinalizers, r.sources.Release}
	case r.scope == reconciler.ClassesScope && claim.Spec.VolumeName != "":
		return []step.Func{r.provisioner.SettleProvisioning, r.provisioner.RemoveFinalizers, r.adjust}
	case r.scope == reconciler.ClassesScope:
		return []step.Func{
			r.findClass, r.sources.FindPlace, r.provisioner.AwaitProvisionRequest, r.provisioner.FindProvisionedVolume, r.findNode, r.provisioner.Provision, r.provisioner.SettleProvisioning, r.provisioner.RemoveFinalizers,
		}
	case binder.Completed(claim):
		return []step.Func{r.protector.EnsureProtected, r.ensureMigrated, r.binder.FindBoundVolume, r.binder.Bind, r.provisioner.SettleProvisioning, r.provisioner.RemoveFinalizers, r.adjust}
	default:
		return []step.Func{
			r.protector.EnsureProtected, r.ensureMigrated, r.findClass, r.sources.FindPlace, r.findNode, r.binder.FindVolume, r.binder.ReportMismatches, r.assignDefaultClass, r.provisioner.Provision, r.binder.Bind,
		}
	}
}

// SetupWithManager watches claims and everything that a claim may wait for, but for snapshots.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	built, err := ctrl.NewControllerManagedBy(mgr).
		Named("persistentvolumeclaim").
		Watches(&corev1.PersistentVolumeClaim{}, r.ClaimEvents()).
		Watches(&corev1.PersistentVolumeClaim{}, handler.EnqueueRequestsFromMapFunc(r.sources.ClaimsCopying), builder.WithPredicates(datasource.NewPhases, wake.NotAtStart)).
		Watches(&corev1.PersistentVolumeClaim{}, handler.EnqueueRequestsFromMapFunc(r.sources.ClaimCopied), builder.WithPredicates(datasource.NewPhases, wake.NotAtStart)).
		Watches(&corev1.PersistentVolume{}, r.VolumeEvents()).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(claimsOfPod), builder.WithPredicates(uses.OnlyNew)).
		Watches(&storagev1.StorageClass{}, handler.EnqueueRequestsFromMapFunc(r.claimsWaitingForClass), builder.WithPredicates(newClasses, wake.NotAtStart)).
		Watches(&stowagev1alpha1.StorageBackend{}, handler.EnqueueRequestsFromMapFunc(r.claimsWaitingForBackend), onlyUsableBackends()).
		Watches(&stowagev1alpha1.NodeVolume{}, handler.EnqueueRequestsFromMapFunc(r.ClaimOfNodeVolume)).
		Watches(&stowagev1alpha1.NodeDisk{}, r.diskEvents(), room.OnlyMore()).
		Watches(&corev1.Node{}, handler.EnqueueRequestsFromMapFunc(r.claimsWaitingForNode), onlyNewNodes()).
		Watches(&corev1.Node{}, handler.EnqueueRequestsFromMapFunc(r.provisioner.ClaimsPlacedOn), builder.WithPredicates(wake.OnlyDeletions)).
		WatchesRawSource(source.Func(r.waking.Start)).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers.Of(mgr, workers.Claims, claimWorkers), NewQueue: backlog.NewQueue[ctrl.Request]}).
		Build(effect.Reported[ctrl.Request](r))
	r.WatchSnapshots = func() error { return r.sources.WatchSnapshots(mgr.GetCache(), built) }
	return err
}

// claimWorkers is the number of concurrent reconciles: a bind mostly waits for the API server.
const claimWorkers = 32
