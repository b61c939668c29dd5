// Package recycling empties directories of one node that static volumes of policy Recycle lie
// in, as NodeRecycling objects order. The node agent runs it on every node, beside a kubelet or
// not.
//
// It removes nothing without the manager's approval of its newest request. It removes nothing
// outside the agent's --recycle-root, nothing that is mounted anywhere, and never the directory
// itself.
package recycling

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/effect"
	"github.com/stowage-dev/stowage/internal/mount/filetree"
)

const (
	// approvalLasts is how long an approval holds, from the agent's request on. After that the
	// agent requests again.
	approvalLasts = 10 * time.Second
	// concurrentRecyclings is how many objects are reconciled at once: removing may take long.
	concurrentRecyclings = 4
)

// errUnconfirmed is an approval that holds no longer.
var errUnconfirmed = errors.New("the approval doesn't hold any more")

// Options are the dependencies of the reconciler.
type Options struct {
	// NodeName is the node of the directories.
	NodeName string
	// Folder empties them.
	Folder Folder
	// Client writes, and reads from a cache of this node's NodeRecyclings.
	Client client.Client
	// Live reads from the API server.
	Live client.Reader
	// Clock measures the age of approvals.
	Clock clock.PassiveClock
}

// Reconciler empties directories.
type Reconciler struct {
	Options
	// pending are the requests that are not used yet.
	pending requests
	// approved are the requests with files that are being removed.
	approved requests
}

// NewReconciler returns the reconciler of a node's NodeRecyclings.
func NewReconciler(options Options) *Reconciler {
	return &Reconciler{Options: options}
}

// +kubebuilder:rbac:groups=stowage.dev,resources=noderecyclings,verbs=get;list;watch
// +kubebuilder:rbac:groups=stowage.dev,resources=noderecyclings/status,verbs=patch

// Reconcile checks whether the directory can be emptied, requests approval, and empties it once
// that is given.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	stored := &stowagev1alpha1.NodeRecycling{}
	if err := r.Client.Get(ctx, request.NamespacedName, stored); err != nil {
		r.pending.forget(request.Name)
		r.approved.forget(request.Name)
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if stored.Spec.NodeName != r.NodeName || !stored.DeletionTimestamp.IsZero() || isEmptied(stored) {
		return ctrl.Result{}, nil
	}
	path := string(stored.Spec.Path)
	if err := r.Folder.Check(path); err != nil {
		return r.finish(ctx, stored, err)
	}
	if approved, found := r.approved.find(stored); found {
		if err := r.Folder.Continue(ctx, path, approved.id); err != nil {
			return r.finish(ctx, stored, err)
		}
		r.approved.forget(stored.Name)
	}
	pending, found := r.pending.find(stored)
	switch {
	case !found:
		return r.requestApproval(ctx, stored)
	case stored.Status.Asking != pending.id:
		return r.requestAgain(ctx, stored, pending)
	case stored.Spec.Approved != pending.id:
		return ctrl.Result{}, nil
	}
	r.pending.forget(stored.Name) // Each approval is good for one attempt.
	confirm := func(ctx context.Context) error { return r.confirm(ctx, stored, pending) }
	err := r.Folder.Empty(ctx, path, pending.id, confirm)
	if errors.Is(err, filetree.ErrUnfinished) {
		r.approved.set(stored.Name, pending)
	}
	return r.finish(ctx, stored, err)
}

// requestApproval requests the manager's approval to empty the directory now.
func (r *Reconciler) requestApproval(ctx context.Context, stored *stowagev1alpha1.NodeRecycling) (ctrl.Result, error) {
	request := approvalRequest{object: stored.UID, id: string(uuid.NewUUID()), at: r.Clock.Now()}
	recycling := stored.DeepCopy()
	recycling.Status.Asking = request.id
	setEmptied(recycling, stowagev1alpha1.ReasonPending, "the directory can be emptied: waiting for the approval of the manager")
	result, err := r.write(ctx, stored, recycling, ctrl.Result{})
	if err == nil && result.IsZero() {
		r.pending.set(stored.Name, request)
	}
	return result, err
}

// requestAgain waits until a request is too old, and requests again. The status shows another one:
// the cache is stale, or a second agent of this node requested since. Without the wait, the two
// would replace each other's requests for ever.
func (r *Reconciler) requestAgain(ctx context.Context, stored *stowagev1alpha1.NodeRecycling, pending approvalRequest) (ctrl.Result, error) {
	if left := approvalLasts - r.Clock.Since(pending.at); left > 0 {
		return ctrl.Result{RequeueAfter: left}, nil
	}
	return r.requestApproval(ctx, stored)
}

// confirm checks with a live read that an approval still holds. Of two agents of this node, only
// the one with the newest approval passes.
func (r *Reconciler) confirm(ctx context.Context, of *stowagev1alpha1.NodeRecycling, approved approvalRequest) error {
	live := &stowagev1alpha1.NodeRecycling{}
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(of), live); err != nil {
		if apierrors.IsNotFound(err) {
			return errUnconfirmed
		}
		return fmt.Errorf("reading NodeRecycling %s: %w", of.Name, err)
	}
	if live.UID != of.UID || !live.DeletionTimestamp.IsZero() || live.Spec.Approved != approved.id ||
		live.Status.Asking != approved.id || r.Clock.Since(approved.at) > approvalLasts {
		return errUnconfirmed
	}
	return nil
}

// finish reports the result. After any problem, the next attempt needs a new approval.
func (r *Reconciler) finish(ctx context.Context, stored *stowagev1alpha1.NodeRecycling, problem error) (ctrl.Result, error) {
	recycling := stored.DeepCopy()
	switch {
	case errors.Is(problem, errUnconfirmed):
		return ctrl.Result{RequeueAfter: staleRetry}, nil
	case problem != nil:
		r.pending.forget(stored.Name)
		recycling.Status.Asking = ""
		setEmptied(recycling, reasons.Of(problem), messageOf(problem, r.Folder.Root))
		return r.write(ctx, stored, recycling, retryOf(problem))
	default:
		setEmptied(recycling, stowagev1alpha1.ReasonReady, "nothing is left in the directory")
		result, err := r.write(ctx, stored, recycling, ctrl.Result{})
		if err == nil && result.IsZero() {
			effect.Log(ctx, effect.Recycled, recycling.CreationTimestamp.Time, recycling)
		}
		return result, err
	}
}

// write writes the status of this version, if it changed. A status for another version would
// overwrite a newer request.
func (r *Reconciler) write(ctx context.Context, stored, recycling *stowagev1alpha1.NodeRecycling, result ctrl.Result) (ctrl.Result, error) {
	recycling.Status.ObservedGeneration = recycling.Generation
	if equality.Semantic.DeepEqual(stored.Status, recycling.Status) {
		return result, nil
	}
	patch := client.MergeFromWithOptions(stored, client.MergeFromWithOptimisticLock{})
	err := r.Client.Status().Patch(ctx, recycling, patch)
	switch {
	case apierrors.IsConflict(err) || apierrors.IsNotFound(err):
		return ctrl.Result{RequeueAfter: staleRetry}, nil
	case err != nil:
		return ctrl.Result{}, fmt.Errorf("writing the status of NodeRecycling %s: %w", recycling.Name, err)
	default:
		return result, nil
	}
}

// SetupWithManager adds the reconciler to a manager.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("noderecycling").
		For(&stowagev1alpha1.NodeRecycling{}).
		WithOptions(controller.Options{MaxConcurrentReconciles: concurrentRecyclings}).
		Complete(effect.Reported[ctrl.Request](r))
}
