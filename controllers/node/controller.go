// Package node is the reconciler of Nodes. It decides which volumes are attached to a node, and
// which are detached: instead of kube-controller-manager's attach/detach controller, in
// scope=cluster. It creates and deletes VolumeAttachments, and keeps status.volumesAttached.
//
// It adds a volume to volumesAttached after the attach, and removes it before the detach. It
// detaches by force only if the policy of the backend allows it. It does not attach or detach
// itself: package volumeattachment does. Decisions are in internal/attach.
package node

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/controllers/node/changes"
	"github.com/stowage-dev/stowage/controllers/node/memory"
	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/internal/attach"
	"github.com/stowage-dev/stowage/internal/drivers"
	"github.com/stowage-dev/stowage/internal/effect"
	"github.com/stowage-dev/stowage/internal/wake"
	"github.com/stowage-dev/stowage/internal/workers"
)

// nodeWorkers is the number of concurrent reconciles.
const nodeWorkers = 32

// Reconciler decides what is attached to a node: it compares what the node's pods need with
// what the node has. It creates and deletes VolumeAttachments for every driver of the cluster,
// and keeps node.status.volumesAttached. The driver's attacher attaches and detaches. It runs
// in scope=cluster only: elsewhere kube-controller-manager decides.
type Reconciler struct {
	client      client.Client
	planner     *planner
	attachments *attachments
	marker      *marker
	events      *podEvents
	reserved    *memory.Reservations
	waking      *wake.Source
}

// New makes the reconciler.
func New(deps reconciler.Dependencies) *Reconciler {
	reserved, waking := &memory.Reservations{}, &wake.Source{}
	otherNodes := newOtherNodes(deps, reserved)
	attachments := &attachments{client: deps.Client, live: deps.Live, drivers: drivers.New(deps.Client), otherNodes: otherNodes, reserved: reserved, prepared: deps.Prepared, deleted: deps.Deleted}
	return &Reconciler{
		client: deps.Client,
		planner: &planner{
			inspector: &inspector{client: deps.Client, clock: deps.Clock, otherNodes: otherNodes, gone: &attachments.gone},
			forcer:    &forcer{client: deps.Client, storage: deps.Storage, drivers: drivers.New(deps.Client), waking: waking, patience: deps.ForceDetachAfter},
			apiServer: apiServer{live: deps.Live, shared: deps.Reads},
		},
		attachments: attachments,
		marker:      &marker{client: deps.Client, clock: deps.Clock, attachments: attachments},
		events:      &podEvents{client: deps.Client, events: deps.Events},
		reserved:    reserved, waking: waking,
	}
}

// +kubebuilder:rbac:groups="",resources=nodes,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=nodes/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=pods;persistentvolumeclaims;persistentvolumes,verbs=get;list;watch
// +kubebuilder:rbac:groups=storage.k8s.io,resources=volumeattachments,verbs=get;list;watch;create;delete
// +kubebuilder:rbac:groups=storage.k8s.io,resources=csidrivers;csinodes,verbs=get;list;watch
// +kubebuilder:rbac:groups=stowage.dev,resources=storagebackends,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Reconcile brings one node as far as possible now. A crash may interrupt the creates, the
// status write and the deletes: the next pass finds what is left to do.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	cached, err := r.planner.inspector.inspect(ctx, cache{r.client}, request.Name)
	if err != nil {
		return ctrl.Result{}, err
	}
	r.reserved.ReleaseBut(cached.Name, cached.awaits)
	decidedOn, plan, err := r.planner.plan(ctx, cached)
	if err != nil {
		return ctrl.Result{}, err
	}
	again := &requeue{}
	created := r.attachments.create(ctx, decidedOn, plan, again)
	detached := r.detach(ctx, decidedOn, plan, again)
	r.events.record(ctx, decidedOn, plan)
	if err := errors.Join(created, detached); err != nil {
		return ctrl.Result{}, err
	}
	return again.result(plan), nil
}

// detach updates volumesAttached before it deletes VolumeAttachments, never after.
func (r *Reconciler) detach(ctx context.Context, s *snapshot, plan []attach.Step, again *requeue) error {
	marked, err := r.marker.mark(ctx, s, plan, again)
	if err != nil {
		return again.afterConflict(err)
	}
	var failures []error
	for _, step := range plan {
		if step.Action == attach.Delete {
			failures = append(failures, again.afterConflict(r.attachments.delete(ctx, s, step, marked)))
		}
	}
	return errors.Join(failures...)
}

// SetupWithManager watches nodes and everything that decides what is attached to one.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	watches := watches{r.client}
	return ctrl.NewControllerManagedBy(mgr).
		Named("node").
		For(&corev1.Node{}, builder.WithPredicates(changes.NodeState)).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(nodeOfPod), builder.WithPredicates(changes.Users)).
		Watches(&corev1.PersistentVolumeClaim{}, handler.EnqueueRequestsFromMapFunc(watches.nodesOfClaim), builder.WithPredicates(changes.Bindings, wake.NotAtStart)).
		Watches(&corev1.PersistentVolume{}, handler.EnqueueRequestsFromMapFunc(watches.nodesOfVolume), builder.WithPredicates(changes.ClaimRefs, wake.NotAtStart)).
		Watches(&storagev1.VolumeAttachment{}, wake.Delayed(attachmentDelay, nodeOfAttachment)).
		Watches(&storagev1.VolumeAttachment{}, handler.EnqueueRequestsFromMapFunc(watches.nodesWaitingFor), builder.WithPredicates(wake.OnlyDeletions)).
		Watches(&storagev1.CSIDriver{}, handler.EnqueueRequestsFromMapFunc(watches.allNodes), builder.WithPredicates(changes.Needs)).
		Watches(&storagev1.CSINode{}, handler.EnqueueRequestsFromMapFunc(nodeOfDrivers), builder.WithPredicates(changes.Drivers)).
		Watches(&stowagev1alpha1.StorageBackend{}, handler.EnqueueRequestsFromMapFunc(watches.allNodes), builder.WithPredicates(changes.InTreeDisks)).
		WatchesRawSource(source.Func(r.waking.Start)).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers.Of(mgr, workers.Nodes, nodeWorkers)}).
		Complete(effect.Reported[ctrl.Request](r))
}
