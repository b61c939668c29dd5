// Package persistentvolume is the reconciler of PersistentVolumes. It sets their phases,
// protects them while they are bound, and reclaims them. Storage is deleted, kept or recycled
// as the reclaim policy says, within the undelete window of the backend.
//
// It deletes storage only after live reads: of the volume, of its claim, of other volumes with
// the same handle, of attachments and of nodes. It never binds. The only thing that it writes
// to a claim is the condition that its volume is being deleted.
package persistentvolume

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/controllers/persistentvolume/reclaim"
	"github.com/stowage-dev/stowage/controllers/persistentvolume/recycle"
	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/bindable"
	"github.com/stowage-dev/stowage/internal/binder"
	"github.com/stowage-dev/stowage/internal/event"
	"github.com/stowage-dev/stowage/internal/opener"
	"github.com/stowage-dev/stowage/internal/patch"
	"github.com/stowage-dev/stowage/internal/provisioned"
	"github.com/stowage-dev/stowage/internal/uses"
	"github.com/stowage-dev/stowage/internal/wake"
	"github.com/stowage-dev/stowage/internal/wrap"
)

// Reconciler keeps the phases of volumes. Reclaimer and Recycler have the steps after the
// deletion of their claim.
type Reconciler struct {
	client   client.Client
	live     client.Reader
	scope    reconciler.Scope
	storage  *opener.Opener
	index    *binder.Index
	waking   wake.Source
	recorded event.Last

	recycler  *recycle.Recycler
	reclaimer *reclaim.Reclaimer
}

// New makes the reconciler. It shares the index with the reconciler of claims.
func New(deps reconciler.Dependencies, index *binder.Index) *Reconciler {
	r := &Reconciler{client: deps.Client, live: deps.Live, scope: deps.Scope, storage: deps.Storage, index: index}
	r.recycler = recycle.New(deps, r.waking.Add, &r.recorded)
	r.reclaimer = reclaim.New(deps, r.openFor, r.recycler, &r.recorded)
	return r
}

// volumeStep is one step for a volume. It returns whether the pass is over, and when to
// reconcile again.
type volumeStep func(context.Context, *corev1.PersistentVolume) (done bool, result ctrl.Result, err error)

// +kubebuilder:rbac:groups="",resources=persistentvolumes,verbs=get;list;watch;update;patch;delete
// +kubebuilder:rbac:groups="",resources=persistentvolumes/status,verbs=update;patch
// +kubebuilder:rbac:groups="",resources=persistentvolumes/finalizers,verbs=update
// +kubebuilder:rbac:groups="",resources=persistentvolumeclaims,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=persistentvolumeclaims/status,verbs=patch

// Reconcile brings one volume as far as it can go now.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	pv := &corev1.PersistentVolume{}
	if err := r.client.Get(ctx, request.NamespacedName, pv); err != nil {
		r.recorded.Forget(request.NamespacedName)
		if client.IgnoreNotFound(err) != nil || r.scope == reconciler.ClassesScope {
			return ctrl.Result{}, client.IgnoreNotFound(err)
		}
		return ctrl.Result{}, r.recycler.EndRecycling(ctx, request.Name)
	}
	for _, step := range r.steps() {
		done, result, err := step(ctx, pv)
		switch {
		case apierrors.IsConflict(err):
			return ctrl.Result{RequeueAfter: wake.AfterConflict}, nil
		case err != nil || done:
			return result, err
		}
	}
	return ctrl.Result{}, nil
}

// steps are the steps for a volume, in order. In scope=classes kube-controller-manager keeps
// phases and protection.
func (r *Reconciler) steps() []volumeStep {
	if r.scope == reconciler.ClassesScope {
		return []volumeStep{r.reclaimer.EnsureReclaimable, r.reclaimer.RemoveAttachFinalizer, r.reclaimer.Reclaim}
	}
	return []volumeStep{
		r.recycler.EnsureNotRecycling, r.reclaimer.EnsureProtected, r.ensureMigrated, r.reclaimer.EnsureReclaimable, r.ensurePhase,
		r.reclaimer.RemoveProtection, r.reclaimer.RemoveAttachFinalizer, r.reclaimer.Reclaim,
	}
}

// ensurePhase writes the phase that follows from the volume and its claim. It skips a volume
// that is tied to a claim which is not bound to it yet. The claim's reconciler writes both,
// now or on its next pass.
func (r *Reconciler) ensurePhase(ctx context.Context, pv *corev1.PersistentVolume) (bool, ctrl.Result, error) {
	ref := pv.Spec.ClaimRef
	if ref == nil || ref.UID == "" {
		return r.ensureAvailable(ctx, pv)
	}
	claim, err := r.claimOf(ctx, ref)
	switch {
	case err != nil:
		return false, ctrl.Result{}, err
	case claim == nil:
		return false, ctrl.Result{}, r.release(ctx, pv)
	case claim.Spec.VolumeName == "" && pv.DeletionTimestamp.IsZero():
		return true, ctrl.Result{}, nil
	case claim.Spec.VolumeName == "":
		return r.releaseUnbound(ctx, pv)
	case claim.Spec.VolumeName == pv.Name:
		return false, ctrl.Result{}, r.ensureBound(ctx, pv)
	default:
		return false, ctrl.Result{}, r.unbind(ctx, pv, claim)
	}
}

// ensureAvailable sets a free volume to Available, unless a claim is about to be bound to it:
// the two writes would conflict.
func (r *Reconciler) ensureAvailable(ctx context.Context, pv *corev1.PersistentVolume) (bool, ctrl.Result, error) {
	if pv.Status.Phase != corev1.VolumeAvailable && pv.DeletionTimestamp.IsZero() && r.index.Promised(pv.Name) {
		return true, ctrl.Result{RequeueAfter: wake.AfterContention}, nil
	}
	return false, ctrl.Result{}, patch.SetPhase(ctx, r.client, pv, corev1.VolumeAvailable, "")
}

// ensureBound sets a volume to Bound. The bind wrote that phase before it wrote the claim. If
// the cache shows another phase, the cache is most likely stale, and a live read has to
// confirm it before the write.
func (r *Reconciler) ensureBound(ctx context.Context, pv *corev1.PersistentVolume) error {
	if pv.Status.Phase == corev1.VolumeBound {
		return nil
	}
	current := &corev1.PersistentVolume{}
	err := r.live.Get(ctx, client.ObjectKeyFromObject(pv), current)
	if err != nil || current.ResourceVersion != pv.ResourceVersion {
		return wrap.Error(client.IgnoreNotFound(err), "reading volume %s", pv.Name)
	}
	return patch.SetPhase(ctx, r.client, pv, corev1.VolumeBound, "")
}

// claimOf finds the claim of a reference. It returns nil if the claim was deleted, even if it
// was recreated under the same name. The cache may not show a new claim yet, so a live read
// confirms that it is gone.
func (r *Reconciler) claimOf(ctx context.Context, ref *corev1.ObjectReference) (*corev1.PersistentVolumeClaim, error) {
	key := client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}
	for _, reader := range []client.Reader{r.client, r.live} {
		claim := &corev1.PersistentVolumeClaim{}
		err := reader.Get(ctx, key, claim, client.UnsafeDisableDeepCopy)
		switch {
		case err == nil && claim.UID == ref.UID:
			return claim, nil
		case client.IgnoreNotFound(err) != nil:
			return nil, fmt.Errorf("reading claim %s: %w", key, err)
		}
	}
	return nil, nil
}

// release sets a volume without its claim to Released. Its data stays as it is.
func (r *Reconciler) release(ctx context.Context, pv *corev1.PersistentVolume) error {
	if pv.Status.Phase == corev1.VolumeFailed {
		return nil
	}
	return patch.SetPhase(ctx, r.client, pv, corev1.VolumeReleased, "")
}

// releaseUnbound releases a deleted volume if its claim is not bound to it yet. The claim
// never will be, and each would wait for the other.
//
// A bind may be in flight. It writes the volume's phase before the claim. If the phase is not
// Bound yet, this write makes the bind's phase write conflict. If it is, this writes the claim
// first, so that the bind's last write conflicts.
func (r *Reconciler) releaseUnbound(ctx context.Context, pv *corev1.PersistentVolume) (bool, ctrl.Result, error) {
	ref := pv.Spec.ClaimRef
	claim := &corev1.PersistentVolumeClaim{}
	err := r.live.Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, claim)
	switch {
	case client.IgnoreNotFound(err) != nil:
		return true, ctrl.Result{}, fmt.Errorf("reading claim %s/%s: %w", ref.Namespace, ref.Name, err)
	case uses.Holds(claim, pv):
		return true, ctrl.Result{}, nil
	case pv.Status.Phase == corev1.VolumeBound && claim.UID == ref.UID:
		if err := r.fence(ctx, claim, pv); err != nil {
			return true, ctrl.Result{}, err
		}
	}
	return false, ctrl.Result{}, r.release(ctx, pv)
}

// fence writes to the claim that the volume is being deleted. It changes the resourceVersion
// that a bind needs.
func (r *Reconciler) fence(ctx context.Context, claim *corev1.PersistentVolumeClaim, pv *corev1.PersistentVolume) error {
	before := claim.DeepCopy()
	reason, message := bindable.OldVolume(pv, claim)
	if !bindable.Set(claim, corev1.PersistentVolumeClaimCondition{Status: corev1.ConditionFalse, Reason: reason, Message: message}) {
		return nil
	}
	err := r.client.Status().Patch(ctx, claim, patch.ClaimStatus(before, client.MergeFromWithOptimisticLock{}))
	return wrap.Error(client.IgnoreNotFound(err), "taking volume %s from claim %s/%s", pv.Name, claim.Namespace, claim.Name)
}

// unbind frees a volume that was tied to a claim which took another one. Storage that a
// provisioner made for the claim and no pod used is released, to be reclaimed; what a person
// made becomes available again.
func (r *Reconciler) unbind(ctx context.Context, pv *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) error {
	if provisioned.MadeFor(pv, claim) {
		return r.release(ctx, pv)
	}
	before := pv.DeepCopy()
	if binder.UnbindVolume(pv) {
		err := r.client.Patch(ctx, pv, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
		if err != nil {
			return fmt.Errorf("unbinding volume %s from claim %s/%s: %w", pv.Name, claim.Namespace, claim.Name, err)
		}
	}
	return patch.SetPhase(ctx, r.client, pv, corev1.VolumeAvailable, "")
}

// SetupWithManager watches volumes and what decides about them.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	building := ctrl.NewControllerManagedBy(mgr).
		Named("persistentvolume").
		For(&corev1.PersistentVolume{}).
		Watches(&corev1.PersistentVolumeClaim{}, handler.EnqueueRequestsFromMapFunc(r.volumesOfClaim), builder.WithPredicates(NewTies)).
		Watches(&stowagev1alpha1.NodeVolume{}, handler.EnqueueRequestsFromMapFunc(r.volumeOfNodeVolume)).
		Watches(&stowagev1alpha1.StorageBackend{}, handler.EnqueueRequestsFromMapFunc(r.volumesOfBackend), wake.OnlyNewSpecs()).
		Watches(&storagev1.VolumeAttachment{}, handler.EnqueueRequestsFromMapFunc(reclaim.VolumeOfAttachment), builder.WithPredicates(wake.OnlyEnds)).
		WatchesRawSource(source.Func(r.waking.Start)).
		WithOptions(controller.Options{MaxConcurrentReconciles: volumeWorkers})
	if r.scope == reconciler.ClusterScope {
		building.Watches(&stowagev1alpha1.NodeRecycling{}, &handler.EnqueueRequestForObject{})
	}
	return building.Complete(r)
}

// openFor opens a backend for calls that a volume waits for.
func (r *Reconciler) openFor(pv *corev1.PersistentVolume, object *stowagev1alpha1.StorageBackend) (backend.Backend, error) {
	key := client.ObjectKeyFromObject(pv)
	return r.storage.Open(object, func() { r.waking.Add(key) })
}

// volumeWorkers is the number of concurrent reconciles.
const volumeWorkers = 32
