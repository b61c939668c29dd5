package persistentvolumeclaim

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/storage/volume"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/bindable"
	"github.com/stowage-dev/stowage/internal/binder"
	"github.com/stowage-dev/stowage/internal/index"
	"github.com/stowage-dev/stowage/internal/provisioned"
	"github.com/stowage-dev/stowage/internal/storageclass"
	"github.com/stowage-dev/stowage/internal/uses"
	"github.com/stowage-dev/stowage/internal/wake"
)

// ClaimEvents tells the index who asks for volumes by name and who waits no more,
// and wakes the claim, in this order: no claim takes what an older one asks for.
func (r *Reconciler) ClaimEvents() handler.EventHandler {
	note := func(ctx context.Context, object client.Object, gone bool, queue wake.Queue) {
		claim := object.(*corev1.PersistentVolumeClaim)
		if r.NoteAsking(claim, gone) {
			r.enqueueNaming(ctx, claim.Spec.VolumeName, queue)
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, queue wake.Queue) {
			note(ctx, e.Object, false, queue)
			queue.Add(wake.Request(e.Object))
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, queue wake.Queue) {
			if e.ObjectOld.GetUID() != e.ObjectNew.GetUID() {
				// Deleted and made anew while nobody watched.
				note(ctx, e.ObjectOld, true, queue)
			}
			note(ctx, e.ObjectNew, false, queue)
			before, after := e.ObjectOld.(*corev1.PersistentVolumeClaim), e.ObjectNew.(*corev1.PersistentVolumeClaim)
			if saysMore(before, after) && !begins(before, after) {
				queue.Add(wake.Request(e.ObjectNew))
			}
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, queue wake.Queue) {
			note(ctx, e.Object, true, queue)
			queue.Add(wake.Request(e.Object))
		},
	}
}

// saysMore tells whether a claim changed in more than its conditions: woken by its
// own words, its reconciler would ask a backend that fails again and again, without
// a pause. A resync, in which nothing differs, passes, and so does a condition that
// somebody removed.
func saysMore(before, after *corev1.PersistentVolumeClaim) bool {
	return before.ResourceVersion == after.ResourceVersion || bindable.Reason(after) == "" ||
		!equality.Semantic.DeepEqual(before.Spec, after.Spec) ||
		!equality.Semantic.DeepEqual(withoutConditions(before.Status), withoutConditions(after.Status)) ||
		!equality.Semantic.DeepEqual(wake.WithoutVersion(before.ObjectMeta), wake.WithoutVersion(after.ObjectMeta))
}

// begins tells whether a claim changed in nothing but that its volume is begun: whoever
// wrote that goes on without being woken.
func begins(before, after *corev1.PersistentVolumeClaim) bool {
	return !provisioned.HasIntent(before) && provisioned.HasIntent(after) && after.DeletionTimestamp.IsZero() &&
		equality.Semantic.DeepEqual(before.Spec, after.Spec) && equality.Semantic.DeepEqual(before.Status, after.Status) &&
		equality.Semantic.DeepEqual(withoutIntent(before), withoutIntent(after))
}

// withoutIntent is a claim's metadata but for what is written when its volume is begun.
func withoutIntent(claim *corev1.PersistentVolumeClaim) metav1.ObjectMeta {
	stripped := claim.DeepCopy()
	provisioned.ClearIntent(stripped)
	controllerutil.RemoveFinalizer(stripped, uses.ClaimProtection)
	delete(stripped.Annotations, volume.AnnStorageProvisioner)
	delete(stripped.Annotations, volume.AnnBetaStorageProvisioner)
	return wake.WithoutVersion(stripped.ObjectMeta)
}

func withoutConditions(status corev1.PersistentVolumeClaimStatus) corev1.PersistentVolumeClaimStatus {
	status.Conditions = nil
	return status
}

// NoteAsking keeps what the index knows of a claim's spec.volumeName. It tells
// whether others who name the volume may have it now.
func (r *Reconciler) NoteAsking(claim *corev1.PersistentVolumeClaim, gone bool) (freed bool) {
	going := !claim.DeletionTimestamp.IsZero() && !binder.Completed(claim)
	if gone || going || claim.Spec.VolumeName != "" {
		r.Index.Leave(client.ObjectKeyFromObject(claim))
	}
	if gone || going || claim.Spec.VolumeName == "" {
		return r.Index.Unask(claim)
	}
	r.Index.Ask(claim)
	return false
}

// VolumeEvents keeps the index of volumes, which wakes the claim that a new one
// suits best, and wakes the claims that the volume concerns by name, in this order:
// whoever is woken finds the volume in the index.
func (r *Reconciler) VolumeEvents() handler.EventHandler {
	put := func(ctx context.Context, object client.Object, queue wake.Queue) {
		pv := object.(*corev1.PersistentVolume)
		r.Index.Put(pv)
		if r.scope == reconciler.ClusterScope {
			enqueueReferredClaim(pv, queue)
			r.enqueueNaming(ctx, pv.Name, queue)
			r.enqueueForRefresh(pv, queue)
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, queue wake.Queue) { put(ctx, e.Object, queue) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, queue wake.Queue) {
			// The claim that the volume was tied to may have to tie it again.
			enqueueReferredClaim(e.ObjectOld.(*corev1.PersistentVolume), queue)
			put(ctx, e.ObjectNew, queue)
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, queue wake.Queue) {
			pv := e.Object.(*corev1.PersistentVolume)
			r.Index.Remove(pv.Name)
			enqueueReferredClaim(pv, queue)
			r.enqueueNaming(ctx, pv.Name, queue)
			r.enqueueForRefresh(pv, queue)
		},
	}
}

// enqueueNaming wakes the claims that name a volume, whether they are bound to it
// or wait for it.
func (r *Reconciler) enqueueNaming(ctx context.Context, volume string, queue wake.Queue) {
	claims := &corev1.PersistentVolumeClaimList{}
	if err := r.client.List(ctx, claims, client.MatchingFields{index.ClaimsByVolume: volume}, wake.Unhurried); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "listing claims", "volume", volume)
	}
	for _, request := range wake.Requests(claims.Items) {
		queue.Add(request)
	}
}

func enqueueReferredClaim(pv *corev1.PersistentVolume, queue wake.Queue) {
	if ref := pv.Spec.ClaimRef; ref != nil {
		queue.Add(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}})
	}
}

// waitingClaims are the claims of a class that aren't bound yet: the cache's own,
// which are not to be changed.
func (r *Reconciler) waitingClaims(ctx context.Context, class string) []corev1.PersistentVolumeClaim {
	claims := &corev1.PersistentVolumeClaimList{}
	if err := r.client.List(ctx, claims, client.MatchingFields{index.ClaimsByClass: index.ClassKey(class)}, wake.Unhurried, client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "listing waiting claims", "class", class)
	}
	return claims.Items
}

// claimsWaitingForClass wakes the claims of a class and, where it is the default,
// those without one.
func (r *Reconciler) claimsWaitingForClass(ctx context.Context, class client.Object) []reconcile.Request {
	requests := wake.Requests(r.waitingClaims(ctx, class.GetName()))
	if storageclass.IsDefault(class.(*storagev1.StorageClass)) {
		requests = append(requests, wake.Requests(r.waitingClaims(ctx, ""))...)
	}
	return requests
}

// claimsWaitingForBackend wakes the claims whose class may name the backend; each
// looks for itself whether it does.
func (r *Reconciler) claimsWaitingForBackend(ctx context.Context, object client.Object) []reconcile.Request {
	return r.claimsOfClassesWith(ctx, object.GetName())
}

// diskEvents wakes, in rounds, the claims whose class may name the backend of a disk that
// has more room than before.
func (r *Reconciler) diskEvents() handler.EventHandler {
	enqueue := func(ctx context.Context, object client.Object, queue wake.Queue) {
		name := object.(*stowagev1alpha1.LocalDisk).Spec.Backend
		r.rooms.Wake(name, queue, func() []reconcile.Request { return r.claimsOfClassesWith(ctx, name) })
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, queue wake.Queue) { enqueue(ctx, e.Object, queue) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, queue wake.Queue) { enqueue(ctx, e.ObjectNew, queue) },
	}
}

func (r *Reconciler) claimsOfClassesWith(ctx context.Context, name string) []reconcile.Request {
	classes := &storagev1.StorageClassList{}
	if err := r.client.List(ctx, classes, wake.Unhurried); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "listing classes")
	}
	var requests []reconcile.Request
	for i := range classes.Items {
		if classes.Items[i].Parameters[stowagev1alpha1.BackendParameter] == name {
			requests = append(requests, wake.Requests(r.waitingClaims(ctx, classes.Items[i].Name))...)
		}
	}
	return requests
}

// claimsWaitingForNode wakes the claims that a new node may bring further: those
// that wait for a consumer's node, and those whose storage may lie on nodes.
func (r *Reconciler) claimsWaitingForNode(ctx context.Context, _ client.Object) []reconcile.Request {
	classes := &storagev1.StorageClassList{}
	if err := r.client.List(ctx, classes, wake.Unhurried, client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "listing classes")
	}
	var requests []reconcile.Request
	for i := range classes.Items {
		if storageclass.WaitsForConsumer(&classes.Items[i]) || backend.IsOurs(classes.Items[i].Provisioner) {
			requests = append(requests, wake.Requests(r.waitingClaims(ctx, classes.Items[i].Name))...)
		}
	}
	return requests
}

// onlyUsableBackends lets pass backends that can be used again, too: who was refused
// by one that was away doesn't wait for its next try.
func onlyUsableBackends() builder.WatchesOption {
	return builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool { return !isUsable(e.ObjectOld) && isUsable(e.ObjectNew) },
	}))
}

func isUsable(object client.Object) bool {
	return meta.IsStatusConditionTrue(object.(*stowagev1alpha1.StorageBackend).Status.Conditions, stowagev1alpha1.ReadyCondition)
}

// onlyNewNodes lets pass nodes that appear and nodes whose labels change: their
// heartbeats bring no claim further.
func onlyNewNodes() builder.WatchesOption {
	return builder.WithPredicates(predicate.LabelChangedPredicate{}, predicate.Funcs{
		DeleteFunc: func(event.DeleteEvent) bool { return false },
	})
}

func claimsOfPod(_ context.Context, object client.Object) []reconcile.Request {
	pod := object.(*corev1.Pod)
	var requests []reconcile.Request
	for _, name := range index.ClaimsOf(pod) {
		requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: pod.Namespace, Name: name}})
	}
	return requests
}

// ClaimOfLocalVolume wakes the claim of a LocalVolume of which its node's agent said
// something. That it was created brings no claim further.
func (r *Reconciler) ClaimOfLocalVolume(_ context.Context, object client.Object) []reconcile.Request {
	r.storage.Renew(object.GetName())
	made := object.(*stowagev1alpha1.LocalVolume)
	if len(made.Status.Conditions) == 0 && made.DeletionTimestamp.IsZero() {
		return nil
	}
	claim := made.Spec.ClaimRef
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: claim.Namespace, Name: claim.Name}}}
}
