// Package node is the reconciler of Nodes: it decides which volumes a node gets, and which it
// gives up. It makes and deletes VolumeAttachments, and keeps status.volumesAttached of Nodes,
// in scope=cluster instead of kube-controller-manager's attach/detach controller.
//
// It adds a volume to volumesAttached after the attach, and removes it before the detach. It
// detaches by force only if the policy of the backend allows it. It does not attach or detach
// itself: package volumeattachment does. Decisions are in internal/attach.
package node

import (
	"context"
	"errors"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/controllers/node/memory"
	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/internal/attach"
	"github.com/stowage-dev/stowage/internal/liveread"
	"github.com/stowage-dev/stowage/internal/opener"
	"github.com/stowage-dev/stowage/internal/sharedread"
	"github.com/stowage-dev/stowage/internal/wake"
)

// nodeWorkers is the number of concurrent reconciles.
const nodeWorkers = 32

// Reconciler decides what is attached to a node: it compares what the node's pods want with
// what the node has. It creates and deletes VolumeAttachments for every driver of the cluster,
// and keeps node.status.volumesAttached. The driver's attacher attaches and detaches. It runs
// in scope=cluster only: elsewhere kube-controller-manager decides.
type Reconciler struct {
	client client.Client
	live   client.Reader
	shared liveread.Reads
	// allAttached is a live read of volumesAttached, shared by concurrent reconciles.
	allAttached *sharedread.Reads[struct{}, volumesAttached]
	storage     *opener.Opener
	// patience is how long a node must have been not Ready, or gone, until volumes of foreign
	// drivers are detached from it by force.
	patience time.Duration
	clock    clock.PassiveClock
	events   events.EventRecorder

	reserved memory.Reservations
	made     memory.MadeAttachments
	// missing is when each node was first seen to be gone, reported when its volumesAttached
	// was last written.
	missing, reported wake.Instants
	recorded          memory.Recorded
	waking            wake.Source
}

// New makes the reconciler.
func New(deps reconciler.Dependencies) *Reconciler {
	return &Reconciler{
		client: deps.Client, live: deps.Live, shared: deps.Reads, storage: deps.Storage,
		patience: deps.ForceDetachAfter, clock: deps.Clock, events: deps.Events,
		allAttached: sharedread.New(func(ctx context.Context, _ struct{}) (volumesAttached, error) {
			return listVolumesAttached(ctx, deps.Live)
		}),
	}
}

// +kubebuilder:rbac:groups="",resources=nodes,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=nodes/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=pods;persistentvolumeclaims;persistentvolumes,verbs=get;list;watch
// +kubebuilder:rbac:groups=storage.k8s.io,resources=volumeattachments,verbs=get;list;watch;create;delete
// +kubebuilder:rbac:groups=storage.k8s.io,resources=csidrivers;csinodes,verbs=get;list;watch
// +kubebuilder:rbac:groups=stowage.dev,resources=storagebackends,verbs=get;list;watch
// +kubebuilder:rbac:groups="";events.k8s.io,resources=events,verbs=create;patch;update

// Reconcile brings one node as far as possible now. A crash may interrupt the creates, the
// status write and the deletes: the next pass finds what is left to do.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	seen, err := r.look(ctx, cachedNode{r}, request.Name)
	if err != nil {
		return ctrl.Result{}, err
	}
	r.reserved.Settle(seen.Name, seen.awaits)
	seen, plan, err := r.plan(ctx, seen)
	if err != nil {
		return ctrl.Result{}, err
	}
	again := &later{}
	created := r.create(ctx, seen, plan, again)
	left := r.leave(ctx, seen, plan, again)
	r.tell(ctx, seen, plan)
	if err := errors.Join(created, left); err != nil {
		return ctrl.Result{}, err
	}
	return again.result(plan), nil
}

// leave updates volumesAttached before it deletes VolumeAttachments, never after.
func (r *Reconciler) leave(ctx context.Context, seen *nodeView, plan []attach.Step, again *later) error {
	if err := r.report(ctx, seen, plan, again); err != nil {
		return again.afterConflict(err)
	}
	var failures []error
	for _, step := range plan {
		if step.Action == attach.Delete {
			failures = append(failures, again.afterConflict(r.remove(ctx, seen, step)))
		}
	}
	return errors.Join(failures...)
}

// later collects the delay before the next pass.
type later struct{ after time.Duration }

func (l *later) in(after time.Duration) {
	if after > 0 && (l.after == 0 || after < l.after) {
		l.after = after
	}
}

// afterConflict retries soon after a conflict: the decision must be made again from what the
// other writer wrote.
func (l *later) afterConflict(err error) error {
	if apierrors.IsConflict(err) {
		l.in(wake.AfterConflict)
		return nil
	}
	return err
}

// result returns when to check again what a plan waits for. The deletion of an attachment
// wakes its waiters; the removal from volumesAttached of another node does not.
func (l *later) result(plan []attach.Step) ctrl.Result {
	for _, step := range plan {
		if step.Action != attach.Wait {
			continue
		}
		l.in(step.After)
		if slices.ContainsFunc(step.Holders, func(holder attach.Holder) bool { return holder.Attachment == nil }) {
			l.in(wake.AfterContention)
		}
	}
	return ctrl.Result{RequeueAfter: l.after}
}

// SetupWithManager watches nodes and everything that decides what is attached to one.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("node").
		For(&corev1.Node{}, builder.WithPredicates(newNodeState)).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(nodeOfPod), builder.WithPredicates(newWants)).
		Watches(&corev1.PersistentVolumeClaim{}, handler.EnqueueRequestsFromMapFunc(r.nodesOfClaim), builder.WithPredicates(newBindings)).
		Watches(&corev1.PersistentVolume{}, handler.EnqueueRequestsFromMapFunc(r.nodesOfVolume), builder.WithPredicates(newClaimRefs)).
		Watches(&storagev1.VolumeAttachment{}, gathered(nodeOfAttachment)).
		Watches(&storagev1.VolumeAttachment{}, handler.EnqueueRequestsFromMapFunc(r.nodesWaitingFor), builder.WithPredicates(wake.OnlyEnds)).
		Watches(&storagev1.CSIDriver{}, handler.EnqueueRequestsFromMapFunc(r.allNodes), builder.WithPredicates(newNeeds)).
		Watches(&storagev1.CSINode{}, handler.EnqueueRequestsFromMapFunc(nodeOfDrivers), builder.WithPredicates(newDrivers)).
		Watches(&stowagev1alpha1.StorageBackend{}, handler.EnqueueRequestsFromMapFunc(r.allNodes), builder.WithPredicates(newExisting)).
		WatchesRawSource(source.Func(r.waking.Start)).
		WithOptions(controller.Options{MaxConcurrentReconciles: nodeWorkers}).
		Complete(r)
}
