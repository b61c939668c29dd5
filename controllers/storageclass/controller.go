// Package storageclass is the reconciler of StorageClasses that are being deleted. A class of a
// CSI driver that Stowage stands in for has a finalizer from before the driver is called, and so has
// a class with parameters for a cloud: only with them is an unfinished call undone. The reconciler removes the finalizer once no
// claim has such a call pending.
//
// The reconciler of claims adds the finalizer. This one writes nothing else, and never deletes.
package storageclass

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	k8sevent "sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/internal/effect"
	"github.com/stowage-dev/stowage/internal/event"
	"github.com/stowage-dev/stowage/internal/patch"
	"github.com/stowage-dev/stowage/internal/provisioned"
	"github.com/stowage-dev/stowage/internal/storageclass"
	"github.com/stowage-dev/stowage/internal/wake"
	"github.com/stowage-dev/stowage/internal/wrap"
)

// checkInterval is how often a deleted class is checked for claims: each claim also wakes it.
const checkInterval = time.Minute

// Reconciler releases StorageClasses that are being deleted.
type Reconciler struct {
	client   client.Client
	live     client.Reader
	events   events.EventRecorder
	recorded event.Last
}

// New makes the reconciler.
func New(deps reconciler.Dependencies) *Reconciler {
	return &Reconciler{client: deps.Client, live: deps.Live, events: deps.Events}
}

// +kubebuilder:rbac:groups=storage.k8s.io,resources=storageclasses,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups="",resources=persistentvolumeclaims,verbs=list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Reconcile removes the finalizer of a class that is being deleted, if no claim needs the class.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	class := &storagev1.StorageClass{}
	if err := r.client.Get(ctx, request.NamespacedName, class); err != nil {
		r.recorded.Forget(request.NamespacedName)
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if class.DeletionTimestamp.IsZero() || !controllerutil.ContainsFinalizer(class, stowagev1alpha1.ProvisioningFinalizer) {
		return ctrl.Result{}, nil
	}
	// The cache only saves live reads: a live read has to confirm that no claim needs the class.
	for _, reader := range []client.Reader{r.client, r.live} {
		user, err := findUser(ctx, reader, class.Name)
		if err != nil {
			return ctrl.Result{}, err
		}
		if user != nil {
			r.report(class, user)
			return ctrl.Result{RequeueAfter: checkInterval}, nil
		}
	}
	before := class.DeepCopy()
	controllerutil.RemoveFinalizer(class, stowagev1alpha1.ProvisioningFinalizer)
	err := r.client.Patch(ctx, class, patch.Fenced(before))
	return reconciler.AfterConflict(ctrl.Result{}, wrap.Error(client.IgnoreNotFound(err), "removing the finalizer of StorageClass %s", class.Name))
}

// findUser finds a claim of a class with a pending operation, or nil. What the claim's annotation
// says about the class doesn't matter: users can write it.
func findUser(ctx context.Context, reader client.Reader, class string) (*corev1.PersistentVolumeClaim, error) {
	claims := &corev1.PersistentVolumeClaimList{}
	if err := reader.List(ctx, claims, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the claims of StorageClass %s: %w", class, err)
	}
	for i := range claims.Items {
		if claim := &claims.Items[i]; provisioned.HasIntent(claim) && storageclass.Of(claim) == class {
			return claim, nil
		}
	}
	return nil, nil
}

// report records, once for each claim, what a deleted class waits for.
func (r *Reconciler) report(class *storagev1.StorageClass, user *corev1.PersistentVolumeClaim) {
	text := fmt.Sprintf("the class is being deleted and waits for claim %s, for which its driver may have made a volume: "+
		"wait until the claim is bound, or delete the claim", client.ObjectKeyFromObject(user))
	if r.recorded.IsNew(client.ObjectKeyFromObject(class), text) {
		r.events.Eventf(class, user, corev1.EventTypeNormal, event.StorageClassInUse, "Delete", "%s", text)
	}
}

// ended passes claims whose pending operation ended, and those that are deleted.
var ended = predicate.Funcs{
	CreateFunc: func(k8sevent.CreateEvent) bool { return false },
	UpdateFunc: func(e k8sevent.UpdateEvent) bool {
		before, after := e.ObjectOld.(*corev1.PersistentVolumeClaim), e.ObjectNew.(*corev1.PersistentVolumeClaim)
		return provisioned.HasIntent(before) && !provisioned.HasIntent(after)
	},
}

// classOfClaim wakes the class of a claim if it is being deleted. A deletion that the cache has yet to show wakes the class itself,
// and finds the claim as it is by then.
func (r *Reconciler) classOfClaim(ctx context.Context, object client.Object) []reconcile.Request {
	name, class := storageclass.Of(object.(*corev1.PersistentVolumeClaim)), &storagev1.StorageClass{}
	if name == "" {
		return nil
	}
	err := r.client.Get(ctx, client.ObjectKey{Name: name}, class, wake.Unhurried, client.UnsafeDisableDeepCopy)
	if apierrors.IsNotFound(err) || err == nil && class.DeletionTimestamp.IsZero() {
		return nil
	}
	return []reconcile.Request{wake.RequestNamed(name)}
}

// SetupWithManager watches classes, and the claims that they wait for.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("storageclass").
		For(&storagev1.StorageClass{}).
		Watches(&corev1.PersistentVolumeClaim{}, handler.EnqueueRequestsFromMapFunc(r.classOfClaim), builder.WithPredicates(ended)).
		Complete(effect.Reported[ctrl.Request](r))
}
