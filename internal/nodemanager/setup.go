package nodemanager

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/effect"
	"github.com/stowage-dev/stowage/internal/nodemanager/podclaims"
	"github.com/stowage-dev/stowage/internal/nodemanager/podstatus"
	"github.com/stowage-dev/stowage/internal/workers"
)

const (
	controllerName = "pod-volumes"
	// concurrentPods is how many pods are reconciled at once: as many as a kubelet takes, so that all of them share what is read
	// before they go. What takes long is an operation.
	concurrentPods = 110
)

// SetupWithManager adds the reconciler to a manager, which may be running. When the manager
// stops, nothing is unmounted, and running mounts are finished. nodeVolumes is a cache of this
// node's NodeVolumes, whose pods are reconciled when one is lost; it may be nil.
func (r *Reconciler) SetupWithManager(mgr manager.Manager, nodeVolumes cache.Cache) error {
	err := mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		<-ctx.Done()
		r.operations.Stop()
		return nil
	}))
	if err != nil {
		return err
	}
	blueprint := builder.TypedControllerManagedBy[types.UID](mgr).
		Named(controllerName).
		Watches(&corev1.Pod{}, podstatus.EventHandler()).
		WatchesRawSource(source.TypedFunc[types.UID](r.watchDirectories)).
		WatchesRawSource(source.TypedFunc[types.UID](r.watchVolumes)).
		WithOptions(controller.TypedOptions[types.UID]{MaxConcurrentReconciles: workers.Of(mgr, workers.Pods, concurrentPods)})
	if r.Disks != nil {
		if err := mgr.Add(manager.RunnableFunc(r.inUse.Run)); err != nil {
			return err
		}
		blueprint = blueprint.
			Watches(&corev1.Node{}, r.nodeHandler()).
			WatchesRawSource(source.TypedFunc[types.UID](r.watchDisks))
	}
	if r.WatchMounts != nil {
		blueprint = blueprint.WatchesRawSource(source.TypedFunc[types.UID](r.watchMounts))
	}
	if r.Objects != nil {
		if err := mgr.Add(manager.RunnableFunc(r.Objects.Run)); err != nil {
			return err
		}
		blueprint = blueprint.WatchesRawSource(source.TypedFunc[types.UID](r.watchObjects))
	}
	if nodeVolumes != nil {
		blueprint = blueprint.WatchesRawSource(source.TypedKind(nodeVolumes, &stowagev1alpha1.NodeVolume{},
			handler.TypedEnqueueRequestsFromMapFunc(r.podsOf), readyChanged()))
	}
	return blueprint.Complete(effect.Reported[types.UID](r))
}

// podsOf returns the pods of this node that use a NodeVolume.
func (r *Reconciler) podsOf(ctx context.Context, volume *stowagev1alpha1.NodeVolume) []types.UID {
	pods, err := podclaims.PodsUsing(ctx, r.Client, podclaims.ClaimOf(volume))
	if err != nil {
		// The next comparison reconciles them.
		logf.FromContext(ctx).Error(err, "listing the pods of a volume")
	}
	uids := make([]types.UID, 0, len(pods))
	for _, pod := range pods {
		uids = append(uids, pod.UID)
	}
	return uids
}

// readyChanged passes NodeVolumes whose Ready condition becomes True, or stops being True.
func readyChanged() predicate.TypedPredicate[*stowagev1alpha1.NodeVolume] {
	return predicate.TypedFuncs[*stowagev1alpha1.NodeVolume]{
		CreateFunc: func(event.TypedCreateEvent[*stowagev1alpha1.NodeVolume]) bool { return false },
		UpdateFunc: func(e event.TypedUpdateEvent[*stowagev1alpha1.NodeVolume]) bool {
			const ready = stowagev1alpha1.ReadyCondition
			return meta.IsStatusConditionTrue(e.ObjectOld.Status.Conditions, ready) != meta.IsStatusConditionTrue(e.ObjectNew.Status.Conditions, ready)
		},
		DeleteFunc: func(event.TypedDeleteEvent[*stowagev1alpha1.NodeVolume]) bool { return false },
	}
}
