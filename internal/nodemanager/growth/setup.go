package growth

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/effect"
	"github.com/stowage-dev/stowage/internal/nodemanager/podclaims"
)

// mountedDelay is how long after a pod got its volumes its claims are read: not while other pods wait
// for theirs.
const mountedDelay = time.Second

// SetupWithManager adds the reconciler to a manager, which may be running. nodeVolumes is a cache of
// this node's NodeVolumes, whose claims are read when their storage has grown; it may be nil.
func (g *Growth) SetupWithManager(mgr manager.Manager, nodeVolumes cache.Cache) error {
	blueprint := ctrl.NewControllerManagedBy(mgr).
		Named("volume-growth").
		Watches(&corev1.Pod{}, claimHandler(), builder.WithPredicates(mountedVolumes())).
		WatchesRawSource(&g.turns.waking).
		WithOptions(g.options())
	if nodeVolumes != nil {
		blueprint = blueprint.WatchesRawSource(source.Kind(nodeVolumes, &stowagev1alpha1.NodeVolume{},
			handler.TypedEnqueueRequestsFromMapFunc(g.requestOfClaim), grownStorage()))
	}
	return blueprint.Complete(effect.Reported[ctrl.Request](g))
}

func (*Growth) options() controller.Options {
	return controller.Options{MaxConcurrentReconciles: concurrentGrowths}
}

// claimHandler maps a pod to its claims, after mountedDelay.
func claimHandler() handler.EventHandler {
	wake := func(object client.Object, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		for _, claim := range podclaims.ClaimsOf(object.(*corev1.Pod)) {
			queue.AddAfter(reconcile.Request{NamespacedName: claim}, mountedDelay)
		}
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			wake(e.Object, queue)
		},
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			wake(e.ObjectNew, queue)
		},
	}
}

// requestOfClaim maps a volume with grown storage to its claim, which the manager is about to
// update.
func (g *Growth) requestOfClaim(_ context.Context, volume *stowagev1alpha1.NodeVolume) []reconcile.Request {
	claim := podclaims.ClaimOf(volume)
	g.backoff.forget(claim.String())
	return []reconcile.Request{{NamespacedName: claim}}
}

// mountedVolumes passes pods whose volumes were just mounted, or are when the agent starts.
func mountedVolumes() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return podclaims.HasVolumes(e.Object.(*corev1.Pod)) },
		UpdateFunc: func(e event.UpdateEvent) bool {
			return !podclaims.HasVolumes(e.ObjectOld.(*corev1.Pod)) && podclaims.HasVolumes(e.ObjectNew.(*corev1.Pod))
		},
		DeleteFunc: func(event.DeleteEvent) bool { return false },
	}
}

// grownStorage passes NodeVolumes with a larger capacity.
func grownStorage() predicate.TypedPredicate[*stowagev1alpha1.NodeVolume] {
	capacity := func(volume *stowagev1alpha1.NodeVolume) resource.Quantity {
		if volume.Status.Capacity == nil {
			return resource.Quantity{}
		}
		return *volume.Status.Capacity
	}
	return predicate.TypedFuncs[*stowagev1alpha1.NodeVolume]{
		CreateFunc: func(event.TypedCreateEvent[*stowagev1alpha1.NodeVolume]) bool { return false },
		UpdateFunc: func(e event.TypedUpdateEvent[*stowagev1alpha1.NodeVolume]) bool {
			before, now := capacity(e.ObjectOld), capacity(e.ObjectNew)
			return before.Cmp(now) < 0
		},
		DeleteFunc: func(event.TypedDeleteEvent[*stowagev1alpha1.NodeVolume]) bool { return false },
	}
}
