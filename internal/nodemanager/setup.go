package nodemanager

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/nodemanager/podclaims"
	"github.com/stowage-dev/stowage/internal/nodemanager/podstatus"
)

const (
	controllerName = "pod-volumes"
	// concurrentPods is how many pods are looked at at once. What takes long runs
	// beside that, in Operations.
	concurrentPods = 32
)

type queue = workqueue.TypedRateLimitingInterface[types.UID]

// IndexPods prepares a manager's cache for the reconciler. It comes before the
// cache is started.
func IndexPods(ctx context.Context, mgr manager.Manager) error {
	if err := mgr.GetFieldIndexer().IndexField(ctx, &corev1.Pod{}, PodUIDIndex, PodUID); err != nil {
		return fmt.Errorf("indexing pods by uid: %w", err)
	}
	return nil
}

// SetupWithManager adds the reconciler to a manager, which may be running. When
// the manager stops, nothing is unmounted; what is being mounted is finished.
// With a cache of this node's NodeVolumes, it looks at the pods of one that is lost.
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
		Watches(&corev1.Pod{}, podHandler()).
		WatchesRawSource(source.TypedFunc[types.UID](r.watchDirectories)).
		WatchesRawSource(source.TypedFunc[types.UID](r.watchVolumes)).
		WithOptions(controller.TypedOptions[types.UID]{MaxConcurrentReconciles: concurrentPods})
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
			handler.TypedEnqueueRequestsFromMapFunc(r.podsOf), otherHealth()))
	}
	return blueprint.Complete(r)
}

// podsOf is the pods of this node that use a local volume.
func (r *Reconciler) podsOf(ctx context.Context, volume *stowagev1alpha1.NodeVolume) []types.UID {
	pods, err := podclaims.PodsUsing(ctx, r.Client, podclaims.ClaimOf(volume))
	if err != nil {
		// They are looked at anyhow, only later.
		logf.FromContext(ctx).Error(err, "looking for the pods of a volume")
	}
	uids := make([]types.UID, 0, len(pods))
	for _, pod := range pods {
		uids = append(uids, pod.UID)
	}
	return uids
}

// otherHealth passes local volumes that can't be mounted any more, or can again.
func otherHealth() predicate.TypedPredicate[*stowagev1alpha1.NodeVolume] {
	return predicate.TypedFuncs[*stowagev1alpha1.NodeVolume]{
		CreateFunc: func(event.TypedCreateEvent[*stowagev1alpha1.NodeVolume]) bool { return false },
		UpdateFunc: func(e event.TypedUpdateEvent[*stowagev1alpha1.NodeVolume]) bool {
			const ready = stowagev1alpha1.ReadyCondition
			return meta.IsStatusConditionTrue(e.ObjectOld.Status.Conditions, ready) != meta.IsStatusConditionTrue(e.ObjectNew.Status.Conditions, ready)
		},
		DeleteFunc: func(event.TypedDeleteEvent[*stowagev1alpha1.NodeVolume]) bool { return false },
	}
}

// podHandler maps a pod's events to its UID. An update may replace a pod by one
// that has only its name: both are looked at.
func podHandler() handler.TypedEventHandler[client.Object, types.UID] {
	return handler.TypedFuncs[client.Object, types.UID]{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) { q.Add(e.Object.GetUID()) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) {
			if podstatus.IsEcho(e.ObjectOld.(*corev1.Pod), e.ObjectNew.(*corev1.Pod)) {
				return
			}
			q.Add(e.ObjectOld.GetUID())
			q.Add(e.ObjectNew.GetUID())
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) { q.Add(e.Object.GetUID()) },
	}
}

// watchDirectories makes the end of an operation, and every directory that is
// there at the start or at a later comparison, wake its pod: pods that went
// while nobody looked have no event left.
func (r *Reconciler) watchDirectories(ctx context.Context, q queue) error {
	r.operations.OnEnd(q.Add)
	go func() {
		ticker := time.NewTicker(compareInterval)
		defer ticker.Stop()
		for {
			uids, err := r.Tree.Pods()
			if err != nil {
				logf.FromContext(ctx).Error(err, "comparing directories with pods")
			}
			for _, uid := range uids {
				q.Add(uid)
			}
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
		}
	}()
	return nil
}
