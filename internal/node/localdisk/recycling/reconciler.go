// Package recycling empties directories of one node that static volumes of
// policy Recycle lie in, as NodeRecycling objects ask for it. The node agent runs it
// on every node, beside a kubelet or not.
//
// It removes nothing without the manager's approval, which is never older than its own
// question, nothing outside the agent's --recycle-root, nothing that is mounted
// anywhere, and never the directory itself.
package recycling

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/mount/filetree"
)

const (
	// approvalLasts is how long after it asked the agent takes an answer for one to what
	// is so now. It asks again after a later one.
	approvalLasts = 10 * time.Second
	// staleRetry is how soon a pass is repeated whose cache was behind.
	staleRetry = 200 * time.Millisecond
	// inUseRetry is how often a directory is looked at that is mounted.
	inUseRetry = 5 * time.Second
	// problemRetry is how often what may cure itself is tried.
	problemRetry = 30 * time.Second
	// sliceRetry is how soon a removal goes on that gave way to others.
	sliceRetry = 10 * time.Millisecond
	// concurrentRecyclings is how many are worked on at once: removing may take long.
	concurrentRecyclings = 4
)

// errUnconfirmed says that the manager doesn't want, any more, what it approved of.
var errUnconfirmed = errors.New("the approval doesn't hold any more")

// Options are what the reconciler is made of.
type Options struct {
	// NodeName is the node whose directories it empties.
	NodeName string
	// Folder empties them.
	Folder Folder
	// Client reads from a cache that holds this node's NodeRecyclings, and writes.
	Client client.Client
	// Live reads from the API server itself.
	Live client.Reader
	// Clock tells how long ago the agent asked.
	Clock clock.PassiveClock
}

// Reconciler empties directories.
type Reconciler struct {
	Options

	mu sync.Mutex
	// asked are the questions that this process asked last, by the objects' names.
	asked map[string]question
	// going are the questions that were approved, and whose files are being removed.
	going map[string]question
}

// question is what the agent asked in status.asking of which object, and when.
type question struct {
	of   types.UID
	name string
	at   time.Time
}

// NewReconciler returns the reconciler of a node's NodeRecyclings.
func NewReconciler(options Options) *Reconciler {
	return &Reconciler{Options: options, asked: map[string]question{}, going: map[string]question{}}
}

// +kubebuilder:rbac:groups=stowage.dev,resources=noderecyclings,verbs=get;list;watch
// +kubebuilder:rbac:groups=stowage.dev,resources=noderecyclings/status,verbs=update;patch

// Reconcile looks whether the directory can be emptied, asks whether to, and empties
// it once that is approved.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	stored := &stowagev1alpha1.NodeRecycling{}
	if err := r.Client.Get(ctx, request.NamespacedName, stored); err != nil {
		r.forget(request.Name)
		r.end(request.Name)
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if stored.Spec.NodeName != r.NodeName || !stored.DeletionTimestamp.IsZero() || isEmptied(stored) {
		return ctrl.Result{}, nil
	}
	path := string(stored.Spec.Path)
	if err := r.Folder.Check(path); err != nil {
		return r.finish(ctx, stored, err)
	}
	if going, found := r.goingOf(stored); found {
		if err := r.Folder.GoOn(ctx, path, going.name); err != nil {
			return r.finish(ctx, stored, err)
		}
		r.end(stored.Name)
	}
	asked, known := r.questionOf(stored)
	switch {
	case !known:
		return r.ask(ctx, stored)
	case stored.Status.Asking != asked.name:
		return r.askLater(ctx, stored, asked)
	case stored.Spec.Approved != asked.name:
		return ctrl.Result{}, nil
	}
	r.forget(stored.Name)
	confirm := func(ctx context.Context) error { return r.confirm(ctx, stored, asked) }
	err := r.Folder.Empty(ctx, path, asked.name, confirm)
	if errors.Is(err, filetree.ErrUnfinished) {
		r.begin(stored.Name, asked)
	}
	return r.finish(ctx, stored, err)
}

// ask asks the manager whether the directory is to be emptied now. What an earlier
// process asked, nobody knows the age of: it is asked again.
func (r *Reconciler) ask(ctx context.Context, stored *stowagev1alpha1.NodeRecycling) (ctrl.Result, error) {
	asking := question{of: stored.UID, name: string(uuid.NewUUID()), at: r.Clock.Now()}
	recycling := stored.DeepCopy()
	recycling.Status.Asking = asking.name
	setEmptied(recycling, stowagev1alpha1.ReasonPending, "the directory can be emptied: the manager decides once more")
	result, err := r.write(ctx, stored, recycling, ctrl.Result{})
	if err == nil && result.IsZero() {
		r.remember(stored.Name, asking)
	}
	return result, err
}

// askLater is for an object that doesn't show what this process asked: the cache may be
// behind, or another agent asked since, with which to take turns would end nowhere.
func (r *Reconciler) askLater(ctx context.Context, stored *stowagev1alpha1.NodeRecycling, asked question) (ctrl.Result, error) {
	if left := approvalLasts - r.Clock.Since(asked.at); left > 0 {
		return ctrl.Result{RequeueAfter: left}, nil
	}
	return r.ask(ctx, stored)
}

// confirm makes sure, from a live read, that what was approved still is. Of two agents
// that take themselves for this node's, only the one that was approved last is.
func (r *Reconciler) confirm(ctx context.Context, of *stowagev1alpha1.NodeRecycling, asked question) error {
	live := &stowagev1alpha1.NodeRecycling{}
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(of), live); err != nil {
		if apierrors.IsNotFound(err) {
			return errUnconfirmed
		}
		return fmt.Errorf("reading NodeRecycling %s: %w", of.Name, err)
	}
	if live.UID != of.UID || !live.DeletionTimestamp.IsZero() || live.Spec.Approved != asked.name ||
		live.Status.Asking != asked.name || r.Clock.Since(asked.at) > approvalLasts {
		return errUnconfirmed
	}
	return nil
}

// finish says how it ended. Whatever went wrong, the manager is asked anew before it is
// tried again.
func (r *Reconciler) finish(ctx context.Context, stored *stowagev1alpha1.NodeRecycling, problem error) (ctrl.Result, error) {
	recycling := stored.DeepCopy()
	switch {
	case errors.Is(problem, errUnconfirmed):
		return ctrl.Result{RequeueAfter: staleRetry}, nil
	case problem != nil:
		r.forget(stored.Name)
		recycling.Status.Asking = ""
		setEmptied(recycling, reasonOf(problem), r.messageOf(problem))
		return r.write(ctx, stored, recycling, retryOf(problem))
	default:
		setEmptied(recycling, stowagev1alpha1.ReasonReady, "nothing is left in the directory")
		return r.write(ctx, stored, recycling, ctrl.Result{})
	}
}

// write writes the status, if it says something new, and of this version only: what
// somebody else asked, or approved, since then isn't answered by it.
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

// questionOf is what this process asked of an object, if it did.
func (r *Reconciler) questionOf(of *stowagev1alpha1.NodeRecycling) (question, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	asked := r.asked[of.Name]
	return asked, asked.of == of.UID
}

// goingOf is the question whose files are being removed, if there is one.
func (r *Reconciler) goingOf(of *stowagev1alpha1.NodeRecycling) (question, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	going := r.going[of.Name]
	return going, going.of == of.UID
}

func (r *Reconciler) begin(name string, approved question) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.going[name] = approved
}

func (r *Reconciler) end(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.going, name)
}

func (r *Reconciler) remember(name string, asked question) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked[name] = asked
}

// forget ends an approval: each is good for one attempt.
func (r *Reconciler) forget(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.asked, name)
}

// SetupWithManager adds the reconciler to a manager.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("noderecycling").
		For(&stowagev1alpha1.NodeRecycling{}).
		WithOptions(controller.Options{MaxConcurrentReconciles: concurrentRecyclings}).
		Complete(r)
}
