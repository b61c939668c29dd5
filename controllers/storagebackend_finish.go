package controllers

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
)

// finish lets a deleted backend go once nothing needs it: its class goes first,
// so that nothing new comes; then its volumes are waited for.
func (r *StorageBackendReconciler) finish(ctx context.Context, object *stowagev1alpha1.StorageBackend) (ctrl.Result, error) {
	if !controllerutil.ContainsFinalizer(object, stowagev1alpha1.BackendInUseFinalizer) {
		return ctrl.Result{}, nil
	}
	if err := r.removeClassesBut(ctx, object, ""); err != nil {
		return ctrl.Result{}, err
	}
	users, err := r.users(ctx, object.Name)
	if err != nil {
		return ctrl.Result{}, err
	}
	if users != "" {
		setCondition(object, stowagev1alpha1.ReadyCondition, metav1.ConditionFalse, stowagev1alpha1.ReasonInUse,
			"the backend is being deleted and waits for "+users+": delete the claims that use it, or set their volumes' policy to Retain and delete the volumes")
		return ctrl.Result{RequeueAfter: probeInterval}, nil
	}
	before := object.DeepCopy()
	controllerutil.RemoveFinalizer(object, stowagev1alpha1.BackendInUseFinalizer)
	err = r.client.Patch(ctx, object, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	return ctrl.Result{}, wrap(client.IgnoreNotFound(err), "removing the finalizer of StorageBackend %s", object.Name)
}

// users tells, from live reads, what still needs a backend: its volumes, records
// of volumes on nodes, and claims for which it may have been called.
func (r *StorageBackendReconciler) users(ctx context.Context, name string) (string, error) {
	volumes, claims, records := &corev1.PersistentVolumeList{}, &corev1.PersistentVolumeClaimList{}, &stowagev1alpha1.LocalVolumeList{}
	for _, list := range []client.ObjectList{volumes, claims, records} {
		if err := r.live.List(ctx, list); err != nil {
			return "", fmt.Errorf("listing what needs StorageBackend %s: %w", name, err)
		}
	}
	for i := range volumes.Items {
		for _, backend := range backendOf(&volumes.Items[i]) {
			if backend == name {
				return "volume " + volumes.Items[i].Name, nil
			}
		}
	}
	for i := range records.Items {
		if records.Items[i].Spec.Backend == name {
			return "LocalVolume " + records.Items[i].Name, nil
		}
	}
	for i := range claims.Items {
		if noted, err := intentOf(&claims.Items[i]); err == nil && noted.Backend == name {
			return "claim " + client.ObjectKeyFromObject(&claims.Items[i]).String(), nil
		}
	}
	return "", nil
}

// onlyNewBackends lets pass what people change in a backend, and not the status
// that the reconciler writes itself.
func onlyNewBackends() builder.ForOption {
	return builder.WithPredicates(predicate.GenerationChangedPredicate{})
}

// onlyNodeLabels lets pass nodes that come, go or change their labels.
func onlyNodeLabels() builder.WatchesOption {
	return builder.WithPredicates(predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool { return predicate.LabelChangedPredicate{}.Update(e) },
	})
}

func requestForName(name string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Name: name}}
}
