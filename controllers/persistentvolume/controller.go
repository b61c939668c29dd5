// Package persistentvolume is the reconciler of PersistentVolumes. It sets their phases,
// protects them while they are bound, and reclaims them. Storage is deleted, kept or recycled
// as the reclaim policy says, within the undelete window of the backend.
//
// It deletes storage only by what is now, not by an old cache: the volume, its claim, other volumes with
// the same handle, attachments and nodes. It never binds. The only thing that it writes
// to a claim is the condition that its volume is being deleted.
package persistentvolume

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
	"github.com/stowage-dev/stowage/controllers/persistentvolume/reclaim"
	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/internal/backlog"
	"github.com/stowage-dev/stowage/internal/effect"
	"github.com/stowage-dev/stowage/internal/wake"
	"github.com/stowage-dev/stowage/internal/workers"
)

// volumeStep is one step for a volume. It returns whether the pass is over, and when to
// reconcile again, also where it goes on.
type volumeStep func(context.Context, *corev1.PersistentVolume) (done bool, result ctrl.Result, err error)

// +kubebuilder:rbac:groups="",resources=persistentvolumes,verbs=get;list;watch;patch;delete
// +kubebuilder:rbac:groups="",resources=persistentvolumes/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=persistentvolumeclaims,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=persistentvolumeclaims/status,verbs=patch

// Reconcile brings one volume as far as it can go now.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	pv := &corev1.PersistentVolume{}
	if err := r.client.Get(ctx, request.NamespacedName, pv); err != nil {
		r.recorded.Forget(request.NamespacedName)
		r.unusable.Forget(request.NamespacedName)
		r.answers.forget(request.Name)
		if client.IgnoreNotFound(err) != nil || r.scope == reconciler.ClassesScope {
			return ctrl.Result{}, client.IgnoreNotFound(err)
		}
		return ctrl.Result{}, r.recycler.EndRecycling(ctx, request.Name)
	}
	again := ctrl.Result{}
	for _, step := range r.steps() {
		done, result, err := step(ctx, pv)
		switch {
		case err != nil:
			return reconciler.AfterConflict(result, err)
		case again.RequeueAfter == 0 || result.RequeueAfter > 0 && result.RequeueAfter < again.RequeueAfter:
			again = result
		}
		if done {
			break
		}
	}
	return again, nil
}

// steps are the steps for a volume, in order. In scope=classes kube-controller-manager keeps
// phases and protection.
func (r *Reconciler) steps() []volumeStep {
	if r.scope == reconciler.ClassesScope {
		return []volumeStep{r.reportUnusable, r.reclaimer.EnsureReclaimable, r.reclaimer.RemoveAttachFinalizer, r.reclaimer.Reclaim}
	}
	return []volumeStep{
		r.recycler.EnsureNotRecycling, r.reclaimer.EnsureProtected, r.ensureMigrated, r.reportUnusable, r.reclaimer.EnsureReclaimable, r.ensurePhase,
		r.reclaimer.RemoveProtection, r.reclaimer.RemoveAttachFinalizer, r.reclaimer.Reclaim,
	}
}

// SetupWithManager watches volumes and what decides about them.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	building := ctrl.NewControllerManagedBy(mgr).
		Named("persistentvolume").
		For(&corev1.PersistentVolume{}).
		Watches(&corev1.PersistentVolumeClaim{}, handler.EnqueueRequestsFromMapFunc(r.volumesOfClaim), builder.WithPredicates(newTies, wake.NotAtStart)).
		Watches(&stowagev1alpha1.NodeVolume{}, handler.EnqueueRequestsFromMapFunc(r.volumeOfNodeVolume)).
		Watches(&stowagev1alpha1.StorageBackend{}, handler.EnqueueRequestsFromMapFunc(r.volumesOfBackend), wake.OnlyNewSpecs()).
		Watches(&storagev1.VolumeAttachment{}, handler.EnqueueRequestsFromMapFunc(reclaim.VolumeOfAttachment), builder.WithPredicates(wake.OnlyDeletions)).
		WatchesRawSource(source.Func(r.waking.Start)).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers.Of(mgr, workers.Volumes, volumeWorkers), NewQueue: backlog.NewQueue[ctrl.Request]})
	if r.scope == reconciler.ClusterScope {
		building.Watches(&stowagev1alpha1.NodeRecycling{}, &handler.EnqueueRequestForObject{})
	}
	return building.Complete(effect.Reported[ctrl.Request](r))
}

// volumeWorkers is the number of concurrent reconciles.
const volumeWorkers = 32
