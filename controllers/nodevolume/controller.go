// Package nodevolume has the manager's part of local storage. It keeps a NodeDisk for each
// node of a backend, and publishes its free space as CSIStorageCapacity. It releases
// NodeVolumes after their node is gone, and recreates those that PersistentVolumes lost
// (Adopter). It writes API objects only: the node agent makes and removes the data.
package nodevolume

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/internal/effect"
	stowageevent "github.com/stowage-dev/stowage/internal/event"
	"github.com/stowage-dev/stowage/internal/index"
	"github.com/stowage-dev/stowage/internal/liveread"
	"github.com/stowage-dev/stowage/internal/message"
	"github.com/stowage-dev/stowage/internal/patch"
	"github.com/stowage-dev/stowage/internal/wake"
	"github.com/stowage-dev/stowage/internal/wrap"
)

// removals is the number of concurrent reconciles of volumes that are being removed. Each
// waits until the cache shows its own writes.
const removals = 8

// Reconciler handles volumes that are being removed. It records an event for the owner of a
// volume that a claim is bound to. It releases a volume after its node was deleted, because no
// agent can remove it. The agents handle all others.
type Reconciler struct {
	client client.Client
	live   client.Reader
	clock  clock.PassiveClock
	events events.EventRecorder
	// dataLoss records events for the owners of volumes.
	dataLoss *dataLoss
}

// New makes the reconciler.
func New(deps reconciler.Dependencies) *Reconciler {
	return &Reconciler{
		client: deps.Client, live: deps.Live, clock: deps.Clock, events: deps.Events,
		dataLoss: &dataLoss{client: deps.Client, live: deps.Live, events: deps.Events},
	}
}

// +kubebuilder:rbac:groups=stowage.dev,resources=nodevolumes,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=stowage.dev,resources=nodevolumes/status,verbs=patch
// +kubebuilder:rbac:groups=stowage.dev,resources=storagebackends,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=nodes;persistentvolumes;persistentvolumeclaims,verbs=get;list;watch

// Reconcile records the loss of data under a bound claim. It records that the node of a volume
// is gone, and releases the volume by its backend's policy. A node that exists never counts as
// gone, Ready or not.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	volume := &stowagev1alpha1.NodeVolume{}
	if err := r.client.Get(ctx, request.NamespacedName, volume); err != nil {
		r.dataLoss.recorded.Forget(request.NamespacedName)
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if volume.DeletionTimestamp.IsZero() || !volume.Spec.RemoveData ||
		!controllerutil.ContainsFinalizer(volume, stowagev1alpha1.NodeVolumeFinalizer) {
		return ctrl.Result{}, nil
	}
	if err := r.dataLoss.record(ctx, volume); err != nil {
		return ctrl.Result{}, err
	}
	gone, err := r.isNodeGone(ctx, volume.Spec.NodeName)
	if err != nil {
		return ctrl.Result{}, err
	}
	policy, err := r.policyOf(ctx, volume)
	if err != nil {
		return ctrl.Result{}, err
	}
	if err := r.setNodeGone(ctx, volume, gone, policy); err != nil || !gone {
		return ctrl.Result{}, err
	}
	if left, releases := r.untilReleased(volume, policy); !releases || left > 0 {
		return ctrl.Result{RequeueAfter: left}, nil
	}
	return ctrl.Result{}, r.release(ctx, volume)
}

// isNodeGone reports whether there is no such node. A live read confirms it, because the cache
// may be stale.
func (r *Reconciler) isNodeGone(ctx context.Context, name string) (bool, error) {
	node, err := liveread.Find(ctx, name, &corev1.Node{}, r.client, r.live)
	return node == nil && err == nil, wrap.Error(err, "reading node %s", name)
}

// policyOf returns the backend's policy for volumes of deleted nodes. Without a backend they
// wait.
func (r *Reconciler) policyOf(ctx context.Context, volume *stowagev1alpha1.NodeVolume) (stowagev1alpha1.NodeGone, error) {
	object, err := liveread.Find(ctx, volume.Spec.Backend, &stowagev1alpha1.StorageBackend{}, r.client)
	if err != nil || object == nil || object.Spec.Local == nil {
		return stowagev1alpha1.NodeGone{}, wrap.Error(err, "reading StorageBackend %s", volume.Spec.Backend)
	}
	return object.Spec.Local.NodeGone, nil
}

// setNodeGone records since when the node is gone, and what to do about it; or that it is back. The
// resourceVersion protects a concurrent write of an agent.
func (r *Reconciler) setNodeGone(ctx context.Context, volume *stowagev1alpha1.NodeVolume, gone bool, policy stowagev1alpha1.NodeGone) error {
	before := volume.DeepCopy()
	var changed bool
	if gone {
		changed = meta.SetStatusCondition(&volume.Status.Conditions, metav1.Condition{
			Type: stowagev1alpha1.NodeGoneCondition, Status: metav1.ConditionTrue, Reason: stowagev1alpha1.ReasonNodeGone,
			Message: message.Cut(adviceOnNode(volume, policy), message.MaxCondition), ObservedGeneration: volume.Generation, LastTransitionTime: metav1.NewTime(r.clock.Now()),
		})
	} else {
		changed = meta.RemoveStatusCondition(&volume.Status.Conditions, stowagev1alpha1.NodeGoneCondition)
	}
	if !changed {
		return nil
	}
	err := r.client.Status().Patch(ctx, volume, patch.Fenced(before))
	if err != nil {
		return wrap.Error(client.IgnoreNotFound(err), "writing the status of NodeVolume %s", volume.Name)
	}
	if now := meta.FindStatusCondition(volume.Status.Conditions, stowagev1alpha1.NodeGoneCondition); now != nil {
		r.events.Eventf(volume, nil, corev1.EventTypeWarning, now.Reason, "Removing", "%s", now.Message)
	}
	return nil
}

func adviceOnNode(volume *stowagev1alpha1.NodeVolume, policy stowagev1alpha1.NodeGone) string {
	gone := fmt.Sprintf("node %s isn't part of the cluster, so no agent removes the data", volume.Spec.NodeName)
	if policy.Policy == stowagev1alpha1.NodeGoneForget && policy.After != nil {
		return fmt.Sprintf("%s: the volume is released after %s, by local.nodeGone of backend %s", gone, policy.After.Duration, volume.Spec.Backend)
	}
	return fmt.Sprintf("%s: bring the node back under this name or, if it is gone for good, set local.nodeGone of backend %s to policy Forget, "+
		"or remove the finalizer %s from NodeVolume %s", gone, volume.Spec.Backend, stowagev1alpha1.NodeVolumeFinalizer, volume.Name)
}

// untilReleased returns how long the volume is still kept, if it is not kept for ever. A
// volume that was never provisioned has no data: no pod could write to it.
func (r *Reconciler) untilReleased(volume *stowagev1alpha1.NodeVolume, policy stowagev1alpha1.NodeGone) (left time.Duration, releases bool) {
	if !meta.IsStatusConditionTrue(volume.Status.Conditions, stowagev1alpha1.ProvisionedCondition) {
		return 0, true
	}
	since := meta.FindStatusCondition(volume.Status.Conditions, stowagev1alpha1.NodeGoneCondition)
	if policy.Policy != stowagev1alpha1.NodeGoneForget || policy.After == nil || since == nil {
		return 0, false
	}
	return max(0, policy.After.Duration-r.clock.Since(since.LastTransitionTime.Time)), true
}

// release removes the finalizer of a volume. Its data may stay on its node.
func (r *Reconciler) release(ctx context.Context, volume *stowagev1alpha1.NodeVolume) error {
	before := volume.DeepCopy()
	controllerutil.RemoveFinalizer(volume, stowagev1alpha1.NodeVolumeFinalizer)
	err := r.client.Patch(ctx, volume, patch.Fenced(before))
	if err != nil {
		return wrap.Error(client.IgnoreNotFound(err), "removing the finalizer of NodeVolume %s", volume.Name)
	}
	left := "nothing was made for it"
	if volume.Status.Path != "" {
		left = "its data stays in " + volume.Status.Path + " on that node's disk"
	}
	r.events.Eventf(volume, nil, corev1.EventTypeWarning, stowageevent.Forgotten, "Removing", "the volume was released because node %s is gone: %s", volume.Spec.NodeName, left)
	return nil
}

// SetupWithManager watches volumes that are being deleted, and the nodes and backends that
// they wait for.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("nodevolume").
		For(&stowagev1alpha1.NodeVolume{}, builder.WithPredicates(predicate.NewPredicateFuncs(isDeleted))).
		Watches(&corev1.Node{}, handler.EnqueueRequestsFromMapFunc(r.deletedOfNode), onlyComingAndGoing()).
		Watches(&stowagev1alpha1.StorageBackend{}, handler.EnqueueRequestsFromMapFunc(r.deletedOfBackend), wake.OnlyNewSpecs()).
		WithOptions(controller.Options{MaxConcurrentReconciles: removals}).
		Complete(effect.Reported[ctrl.Request](r))
}

func isDeleted(object client.Object) bool { return object.GetDeletionTimestamp() != nil }

// onlyComingAndGoing passes nodes that are created or deleted: their heartbeats change
// nothing.
func onlyComingAndGoing() builder.WatchesOption {
	return builder.WithPredicates(predicate.Funcs{UpdateFunc: func(event.UpdateEvent) bool { return false }})
}

func (r *Reconciler) deletedOfNode(ctx context.Context, node client.Object) []reconcile.Request {
	return r.deleted(ctx, client.MatchingFields{index.VolumesByNode: node.GetName()})
}

func (r *Reconciler) deletedOfBackend(ctx context.Context, object client.Object) []reconcile.Request {
	return r.deleted(ctx, client.MatchingLabels{stowagev1alpha1.BackendLabel: object.GetName()})
}

func (r *Reconciler) deleted(ctx context.Context, which client.ListOption) []reconcile.Request {
	volumes := &stowagev1alpha1.NodeVolumeList{}
	if err := r.client.List(ctx, volumes, which, wake.Unhurried, client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "listing local volumes that are being deleted")
	}
	var requests []reconcile.Request
	for i := range volumes.Items {
		if isDeleted(&volumes.Items[i]) {
			requests = append(requests, wake.RequestNamed(volumes.Items[i].Name))
		}
	}
	return requests
}
