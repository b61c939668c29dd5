// Package volumeattributesclass protects VolumeAttributesClasses with a finalizer while claims
// or volumes use them, in scope=cluster instead of kube-controller-manager. It writes nothing
// but the finalizer, and removes it only after a live list.
package volumeattributesclass

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/internal/effect"
	"github.com/stowage-dev/stowage/internal/index"
	"github.com/stowage-dev/stowage/internal/patch"
	"github.com/stowage-dev/stowage/internal/uses"
	"github.com/stowage-dev/stowage/internal/wrap"
)

// Reconciler protects VolumeAttributesClasses from deletion while they are used. It runs in
// scope=cluster only: elsewhere kube-controller-manager does it.
type Reconciler struct {
	client client.Client
	live   client.Reader
}

// New makes the reconciler.
func New(deps reconciler.Dependencies) *Reconciler {
	return &Reconciler{client: deps.Client, live: deps.Live}
}

// +kubebuilder:rbac:groups=storage.k8s.io,resources=volumeattributesclasses,verbs=list;watch;patch
// +kubebuilder:rbac:groups="",resources=persistentvolumes;persistentvolumeclaims,verbs=get;list;watch

// Reconcile protects one class, or ends its protection.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	class := &storagev1.VolumeAttributesClass{}
	if err := r.client.Get(ctx, request.NamespacedName, class); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	step := r.ensureProtected
	if !class.DeletionTimestamp.IsZero() {
		step = r.removeProtection
	}
	return reconciler.AfterConflict(ctrl.Result{}, step(ctx, class))
}

// ensureProtected adds the finalizer to a class that was created while the
// admission plug-in was off.
func (r *Reconciler) ensureProtected(ctx context.Context, class *storagev1.VolumeAttributesClass) error {
	before := class.DeepCopy()
	if !controllerutil.AddFinalizer(class, uses.AttributesClassProtection) {
		return nil
	}
	return r.patch(ctx, class, before, "protecting")
}

// removeProtection releases a deleted class that nothing uses. The cache only saves live
// reads: a live read has to confirm that nothing uses the class.
func (r *Reconciler) removeProtection(ctx context.Context, class *storagev1.VolumeAttributesClass) error {
	before := class.DeepCopy()
	if !controllerutil.RemoveFinalizer(class, uses.AttributesClassProtection) {
		return nil
	}
	for _, used := range []func(context.Context, string) (bool, error){r.usedInCache, r.usedLive} {
		if inUse, err := used(ctx, class.Name); inUse || err != nil {
			return err
		}
	}
	return r.patch(ctx, class, before, "ending the protection of")
}

func (r *Reconciler) usedInCache(ctx context.Context, name string) (bool, error) {
	claims, volumes := &corev1.PersistentVolumeClaimList{}, &corev1.PersistentVolumeList{}
	if err := r.client.List(ctx, claims, client.MatchingFields{index.ClaimsByAttributes: name}); err != nil {
		return false, fmt.Errorf("listing the claims of VolumeAttributesClass %s: %w", name, err)
	}
	if err := r.client.List(ctx, volumes, client.MatchingFields{index.VolumesByAttributes: name}); err != nil {
		return false, fmt.Errorf("listing the volumes of VolumeAttributesClass %s: %w", name, err)
	}
	return len(claims.Items)+len(volumes.Items) > 0, nil
}

func (r *Reconciler) usedLive(ctx context.Context, name string) (bool, error) {
	claims := &corev1.PersistentVolumeClaimList{}
	if err := r.live.List(ctx, claims); err != nil {
		return false, fmt.Errorf("listing claims: %w", err)
	}
	if slices.ContainsFunc(claims.Items, func(claim corev1.PersistentVolumeClaim) bool {
		return slices.Contains(index.AttributesOfClaim(&claim), name)
	}) {
		return true, nil
	}
	volumes := &corev1.PersistentVolumeList{}
	if err := r.live.List(ctx, volumes); err != nil {
		return false, fmt.Errorf("listing volumes: %w", err)
	}
	return slices.ContainsFunc(volumes.Items, func(pv corev1.PersistentVolume) bool {
		return slices.Contains(index.AttributesOfVolume(&pv), name)
	}), nil
}

func (r *Reconciler) patch(ctx context.Context, class, before *storagev1.VolumeAttributesClass, doing string) error {
	err := r.client.Patch(ctx, class, patch.Fenced(before))
	return wrap.Error(client.IgnoreNotFound(err), "%s VolumeAttributesClass %s", doing, class.Name)
}

// SetupWithManager watches classes, and claims and volumes that stop to name one.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	named := handler.EnqueueRequestsFromMapFunc(attributesClasses)
	dropped := builder.WithPredicates(predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			return !slices.Equal(index.AttributesOf(e.ObjectOld), index.AttributesOf(e.ObjectNew))
		},
	})
	return ctrl.NewControllerManagedBy(mgr).
		Named("volumeattributesclass").
		For(&storagev1.VolumeAttributesClass{}).
		Watches(&corev1.PersistentVolumeClaim{}, named, dropped).
		Watches(&corev1.PersistentVolume{}, named, dropped).
		Complete(effect.Reported[ctrl.Request](r))
}

func attributesClasses(_ context.Context, object client.Object) []reconcile.Request {
	var requests []reconcile.Request
	for _, name := range index.AttributesOf(object) {
		requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{Name: name}})
	}
	return requests
}
