package recycle

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/event"
	"github.com/stowage-dev/stowage/internal/patch"
	"github.com/stowage-dev/stowage/internal/wake"
	"github.com/stowage-dev/stowage/internal/wrap"
)

// errPending means that the next step is the node agent's.
var errPending = errors.New("waiting for the node's agent")

// +kubebuilder:rbac:groups=stowage.dev,resources=noderecyclings,verbs=get;list;watch;create;patch;delete

// recycleOnNode makes a node's agent empty the directory of a volume, and makes the volume
// available again. Live reads decided it before:
//
//	create a NodeRecycling with the uid and resourceVersion of that read
//	the agent reports that it can: the next pass, which decided again, approves
//	the agent empties the directory, and reports it
//	remove the claimRef of the volume, with that same resourceVersion
//	delete the NodeRecycling
//
// A stale leader does no harm: each write carries the resourceVersion that it was decided on.
// A change of the volume ends the NodeRecycling.
func (r *Recycler) recycleOnNode(ctx context.Context, pv *corev1.PersistentVolume) (ctrl.Result, error) {
	err := r.emptyOnNode(ctx, pv)
	switch {
	case errors.Is(err, errPending):
		r.record(pv, corev1.EventTypeNormal, event.VolumeRecycle, err)
		return ctrl.Result{RequeueAfter: wake.WithoutAnswer}, nil
	case err != nil:
		return r.retryOrFail(ctx, pv, err)
	}
	if err := r.free(ctx, pv); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, r.EndRecycling(ctx, pv.Name)
}

// emptyOnNode returns nil once the directory is empty.
func (r *Recycler) emptyOnNode(ctx context.Context, pv *corev1.PersistentVolume) error {
	node, err := r.nodeOf(ctx, pv)
	if err != nil {
		return err
	}
	recycling := &stowagev1alpha1.NodeRecycling{}
	err = r.live.Get(ctx, client.ObjectKeyFromObject(pv), recycling)
	switch {
	case apierrors.IsNotFound(err):
		return r.requestRecycling(ctx, pv, node)
	case err != nil:
		return fmt.Errorf("reading NodeRecycling %s: %w", pv.Name, err)
	case !matches(recycling, pv, node):
		if err := r.withdraw(ctx, recycling); err != nil {
			return err
		}
		return backend.InProgress.Errorf("the earlier request to the node's agent is withdrawn")
	}
	return r.followUp(ctx, pv, recycling)
}

// matches reports whether a NodeRecycling matches the current decision.
func matches(recycling *stowagev1alpha1.NodeRecycling, pv *corev1.PersistentVolume, node string) bool {
	wanted := recyclingOf(pv, node)
	wanted.Spec.Approved = recycling.Spec.Approved
	return recycling.Spec == wanted.Spec && recycling.DeletionTimestamp.IsZero()
}

func recyclingOf(pv *corev1.PersistentVolume, node string) *stowagev1alpha1.NodeRecycling {
	ref := pv.Spec.ClaimRef
	return &stowagev1alpha1.NodeRecycling{
		ObjectMeta: metav1.ObjectMeta{Name: pv.Name},
		Spec: stowagev1alpha1.NodeRecyclingSpec{
			NodeName: node,
			Path:     stowagev1alpha1.AbsolutePath(pathOnNode(pv)),
			Volume:   stowagev1alpha1.VolumeVersion{UID: pv.UID, ResourceVersion: pv.ResourceVersion},
			ClaimRef: stowagev1alpha1.ClaimReference{Namespace: ref.Namespace, Name: ref.Name, UID: ref.UID},
		},
	}
}

// requestRecycling creates the NodeRecycling, by which the node's agent checks whether it can empty
// the directory.
func (r *Recycler) requestRecycling(ctx context.Context, pv *corev1.PersistentVolume, node string) error {
	err := r.client.Create(ctx, recyclingOf(pv, node))
	switch {
	case apierrors.IsInvalid(err):
		return backend.Invalid.Errorf("the node's agent can't be asked to empty it: %w", err)
	case client.IgnoreAlreadyExists(err) != nil:
		return fmt.Errorf("asking the agent of node %s: %w", node, err)
	default:
		return awaitAgent(node)
	}
}

func awaitAgent(node string) error {
	return fmt.Errorf("%w: Stowage's node agent of %s is asked to empty the directory", errPending, node)
}

// followUp acts on the agent's status. It approves a request of the agent: this pass decided
// to empty the volume, from reads after the request.
func (r *Recycler) followUp(ctx context.Context, pv *corev1.PersistentVolume, recycling *stowagev1alpha1.NodeRecycling) error {
	emptied := meta.FindStatusCondition(recycling.Status.Conditions, stowagev1alpha1.EmptiedCondition)
	asking := recycling.Status.Asking
	switch {
	case emptied != nil && emptied.Status == metav1.ConditionTrue:
		return nil
	case asking != "" && asking != recycling.Spec.Approved:
		return r.approve(ctx, pv, recycling)
	case asking != "" || emptied == nil:
		return awaitAgent(recycling.Spec.NodeName)
	}
	switch emptied.Reason {
	case stowagev1alpha1.ReasonNotSupported, stowagev1alpha1.ReasonPathOutsideRoot, stowagev1alpha1.ReasonNotADirectory:
		return backend.Invalid.Errorf("the agent of node %s doesn't empty it: %s", recycling.Spec.NodeName, emptied.Message)
	default:
		return fmt.Errorf("%w: on node %s: %s", errPending, recycling.Spec.NodeName, emptied.Message)
	}
}

// approve lets the agent continue. The NodeRecycling was read after the decision began, so
// the agent's request may be newer than the first reads: the decision is repeated.
func (r *Recycler) approve(ctx context.Context, pv *corev1.PersistentVolume, recycling *stowagev1alpha1.NodeRecycling) error {
	if err := r.confirmRecycling(ctx, pv); err != nil {
		return err
	}
	before := recycling.DeepCopy()
	recycling.Spec.Approved = recycling.Status.Asking
	err := r.client.Patch(ctx, recycling, patch.Fenced(before))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("approving NodeRecycling %s: %w", recycling.Name, err)
	}
	return awaitAgent(recycling.Spec.NodeName)
}

// EnsureNotRecycling deletes the NodeRecycling of a volume that must not be emptied any more.
// A person changed the volume, or a crash came after it was freed.
func (r *Recycler) EnsureNotRecycling(ctx context.Context, pv *corev1.PersistentVolume) (bool, ctrl.Result, error) {
	if recyclable(pv) {
		return false, ctrl.Result{}, nil
	}
	return false, ctrl.Result{}, r.EndRecycling(ctx, pv.Name)
}

// EndRecycling deletes the NodeRecycling of a volume, before or after the volume was emptied.
func (r *Recycler) EndRecycling(ctx context.Context, volume string) error {
	recycling := &stowagev1alpha1.NodeRecycling{}
	if err := r.client.Get(ctx, client.ObjectKey{Name: volume}, recycling); err != nil {
		return wrap.Error(client.IgnoreNotFound(err), "reading NodeRecycling %s", volume)
	}
	return r.withdraw(ctx, recycling)
}

// withdraw deletes a NodeRecycling. An agent that works on it stops at its next check. It
// finishes that before it starts another one for the same volume.
func (r *Recycler) withdraw(ctx context.Context, recycling *stowagev1alpha1.NodeRecycling) error {
	err := r.client.Delete(ctx, recycling, client.Preconditions{UID: &recycling.UID})
	return wrap.Error(client.IgnoreNotFound(err), "deleting NodeRecycling %s", recycling.Name)
}
