package persistentvolumeclaim

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/storage/volume"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/controllers/persistentvolumeclaim/expansion"
	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/internal/binder"
	"github.com/stowage-dev/stowage/internal/index"
	"github.com/stowage-dev/stowage/internal/storageclass"
	"github.com/stowage-dev/stowage/internal/wake"
)

// ClaimEvents updates the index with the claims that name volumes and those that are no longer
// pending, and then wakes the claim. In this order no claim takes a volume that an older one
// names.
func (r *Reconciler) ClaimEvents() handler.EventHandler {
	update := func(ctx context.Context, object client.Object, gone bool, queue wake.Queue) {
		claim := object.(*corev1.PersistentVolumeClaim)
		if r.UpdatePreBound(claim, gone) {
			r.enqueueNaming(ctx, claim.Spec.VolumeName, queue)
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, queue wake.Queue) {
			update(ctx, e.Object, false, queue)
			// In scope=classes no condition tells new claims from others.
			if e.IsInInitialList && r.scope == reconciler.ClusterScope && goesOn(e.Object.(*corev1.PersistentVolumeClaim)) {
				wake.AddEarly(queue, wake.Request(e.Object))
			} else {
				queue.Add(wake.Request(e.Object))
			}
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, queue wake.Queue) {
			if e.ObjectOld.GetUID() != e.ObjectNew.GetUID() {
				// The claim was deleted and recreated while the watch was interrupted.
				update(ctx, e.ObjectOld, true, queue)
			}
			update(ctx, e.ObjectNew, false, queue)
			before, after := e.ObjectOld.(*corev1.PersistentVolumeClaim), e.ObjectNew.(*corev1.PersistentVolumeClaim)
			if saysMore(before, after) && !begins(before, after) {
				queue.Add(wake.Request(e.ObjectNew))
			}
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, queue wake.Queue) {
			update(ctx, e.Object, true, queue)
			queue.Add(wake.Request(e.Object))
		},
	}
}

// UpdatePreBound updates the index with a claim's spec.volumeName. It reports whether others that
// name the volume may have it now.
func (r *Reconciler) UpdatePreBound(claim *corev1.PersistentVolumeClaim, gone bool) (freed bool) {
	going := !claim.DeletionTimestamp.IsZero() && !binder.Completed(claim)
	if gone || going || claim.Spec.VolumeName != "" {
		r.Index.RemovePending(client.ObjectKeyFromObject(claim))
	}
	if gone || going || claim.Spec.VolumeName == "" {
		return r.Index.RemovePreBound(claim)
	}
	r.Index.AddPreBound(claim)
	return false
}

// VolumeEvents updates the index of volumes, which wakes the best claim for a new one. It then
// wakes the claims that the volume concerns by name. In this order they find the volume in the
// index.
func (r *Reconciler) VolumeEvents() handler.EventHandler {
	put := func(ctx context.Context, object client.Object, isNew bool, queue wake.Queue) {
		pv := object.(*corev1.PersistentVolume)
		r.Index.Put(pv)
		if r.scope != reconciler.ClusterScope {
			return
		}
		enqueueReferredClaim(pv, queue)
		if isNew {
			r.enqueueNaming(ctx, pv.Name, queue)
		} else {
			enqueueIndexed(r.Index, pv.Name, queue)
		}
		r.enqueueForRefresh(pv, queue)
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, queue wake.Queue) {
			put(ctx, e.Object, !e.IsInInitialList, queue)
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, queue wake.Queue) {
			// The claim that the volume was tied to may have to tie it again.
			enqueueReferredClaim(e.ObjectOld.(*corev1.PersistentVolume), queue)
			put(ctx, e.ObjectNew, e.ObjectOld.GetResourceVersion() != e.ObjectNew.GetResourceVersion(), queue)
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

// enqueueNaming wakes the claims that name a volume, whether they are bound to it or wait for
// it.
func (r *Reconciler) enqueueNaming(ctx context.Context, volume string, queue wake.Queue) {
	claims, err := index.ClaimsNaming(ctx, r.client, volume, wake.Unhurried)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "listing claims", "volume", volume)
	}
	for _, request := range wake.Requests(claims) {
		queue.Add(request)
	}
}

// enqueueIndexed does the same as the watch begins, and in a resync: either all claims are reconciled then, or nothing
// changed since. A claim that the index doesn't have yet comes later, and finds the volume. A look into the cache for
// each volume would take half of a start.
func enqueueIndexed(indexed *binder.Index, volume string, queue wake.Queue) {
	for _, claim := range indexed.PreBoundTo(volume) {
		queue.Add(reconcile.Request{NamespacedName: claim})
	}
}

func enqueueReferredClaim(pv *corev1.PersistentVolume, queue wake.Queue) {
	if ref := pv.Spec.ClaimRef; ref != nil {
		queue.Add(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}})
	}
}

// waitingClaims returns the unbound claims of a class. They are shared with the cache and must
// not be changed.
func (r *Reconciler) pendingClaims(ctx context.Context, class string) []corev1.PersistentVolumeClaim {
	claims := &corev1.PersistentVolumeClaimList{}
	if err := r.client.List(ctx, claims, client.MatchingFields{index.ClaimsByClass: index.ClassKey(class)}, wake.Unhurried, client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "listing waiting claims", "class", class)
	}
	return claims.Items
}

// claimsWaitingForClass wakes the claims of a class and, if it is the default, those without a
// class.
func (r *Reconciler) claimsWaitingForClass(ctx context.Context, class client.Object) []reconcile.Request {
	requests := wake.Requests(r.pendingClaims(ctx, class.GetName()))
	if storageclass.IsDefault(class.(*storagev1.StorageClass)) {
		requests = append(requests, wake.Requests(r.pendingClaims(ctx, ""))...)
	}
	return requests
}

// claimsWaitingForBackend wakes all unbound claims of classes with this backend, and the claims of its volumes
// that request more.
func (r *Reconciler) claimsWaitingForBackend(ctx context.Context, object client.Object) []reconcile.Request {
	return append(r.claimsOfClassesWith(ctx, object.GetName()), claimsThatGrow(ctx, r.client, object.GetName())...)
}

// claimsThatGrow returns the claims that request more than their volumes in a backend have. A CSI driver's own
// resizer may have begun, before the driver had a StorageBackend.
func claimsThatGrow(ctx context.Context, reader client.Reader, backend string) (requests []reconcile.Request) {
	volumes := &corev1.PersistentVolumeList{}
	if err := reader.List(ctx, volumes, client.MatchingFields{index.VolumesByBackend: backend}, wake.Unhurried, client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "listing the volumes of a backend", "backend", backend)
	}
	for i := range volumes.Items {
		ref, claim := volumes.Items[i].Spec.ClaimRef, &corev1.PersistentVolumeClaim{}
		if ref == nil {
			continue
		}
		key := types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}
		if err := reader.Get(ctx, key, claim, wake.Unhurried, client.UnsafeDisableDeepCopy); err == nil && expansion.RequestsMore(claim) {
			requests = append(requests, reconcile.Request{NamespacedName: key})
		}
	}
	return requests
}

// diskEvents wakes, in rounds, the claims of classes with the backend of a disk that has more
// free space than before.
func (r *Reconciler) diskEvents() handler.EventHandler {
	enqueue := func(ctx context.Context, object client.Object, queue wake.Queue) {
		name := object.(*stowagev1alpha1.NodeDisk).Spec.Backend
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
		// The classes of a CSI driver that isn't one of Stowage's name the backend as provisioner.
		if class := &classes.Items[i]; class.Parameters[stowagev1alpha1.BackendParameter] == name || class.Provisioner == name {
			requests = append(requests, wake.Requests(r.pendingClaims(ctx, classes.Items[i].Name))...)
		}
	}
	return requests
}

// claimsWaitingForNode wakes the claims that a new node may help. Those are claims that
// wait for a consumer's node, and claims of drivers that Stowage serves: their storage may be on
// nodes.
func (r *Reconciler) claimsWaitingForNode(ctx context.Context, _ client.Object) []reconcile.Request {
	classes := &storagev1.StorageClassList{}
	if err := r.client.List(ctx, classes, wake.Unhurried, client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "listing classes")
	}
	var requests []reconcile.Request
	for i := range classes.Items {
		served, err := r.drivers.Serves(ctx, classes.Items[i].Provisioner)
		if err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "finding out whether a driver is served", "driver", classes.Items[i].Provisioner)
		}
		if storageclass.WaitsForConsumer(&classes.Items[i]) || served || err != nil {
			requests = append(requests, wake.Requests(r.pendingClaims(ctx, classes.Items[i].Name))...)
		}
	}
	return requests
}

func claimsOfPod(_ context.Context, object client.Object) []reconcile.Request {
	pod := object.(*corev1.Pod)
	var requests []reconcile.Request
	for _, name := range index.ClaimsOf(pod) {
		requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: pod.Namespace, Name: name}})
	}
	return requests
}

// ClaimOfNodeVolume wakes the claim of a NodeVolume after the node agent wrote its status.
// The creation alone helps no claim.
func (r *Reconciler) ClaimOfNodeVolume(_ context.Context, object client.Object) []reconcile.Request {
	r.storage.Renew(object.GetName())
	made := object.(*stowagev1alpha1.NodeVolume)
	if len(made.Status.Conditions) == 0 && made.DeletionTimestamp.IsZero() {
		return nil
	}
	claim := made.Spec.ClaimRef
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: claim.Namespace, Name: claim.Name}}}
}

// enqueueForRefresh schedules the pending claims of a class: their conditions may be outdated.
// None of them gets the changed volume, unless the index reserves it. They run one after
// another: none before quiet is over, and all before it has passed a second time. So no event
// is missed in between.
func (r *Reconciler) enqueueForRefresh(pv *corev1.PersistentVolume, queue wake.Queue) {
	class := volume.GetPersistentVolumeClass(pv)
	if r.refresh.left(class) > 0 {
		return
	}
	waiting := r.Index.Pending(class)
	quiet := refreshAfter + time.Duration(len(waiting))*refreshEach
	for i, claim := range waiting {
		queue.AddAfter(reconcile.Request{NamespacedName: claim}, quiet+quiet*time.Duration(i)/time.Duration(len(waiting)))
	}
	if len(waiting) > 0 {
		r.refresh.set(class, quiet)
	}
}
