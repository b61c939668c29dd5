package provisioning

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/controllers/persistentvolumeclaim/step"
	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/bindable"
	"github.com/stowage-dev/stowage/internal/binder"
	"github.com/stowage-dev/stowage/internal/event"
	"github.com/stowage-dev/stowage/internal/message"
	"github.com/stowage-dev/stowage/internal/patch"
	"github.com/stowage-dev/stowage/internal/provisioned"
	"github.com/stowage-dev/stowage/internal/uses"
	"github.com/stowage-dev/stowage/internal/wake"
	"github.com/stowage-dev/stowage/internal/wrap"
)

// maxPodsNamed is how many pods a message names; it only mentions that there are others.
const maxPodsNamed = 3

// waitForPlacement explains the wait of a claim before its pod has a node: for a pod, or for
// the scheduler. In scope=classes kube-controller-manager reports it.
func (r *Provisioner) waitForPlacement(ctx context.Context, scope *step.Scope) (*step.Wait, error) {
	claim := scope.Claim
	if r.scope == reconciler.ClassesScope {
		return &step.Wait{}, nil
	}
	if impossible := r.checkPossible(ctx, scope); impossible != nil {
		return impossible, nil
	}
	pods, err := r.protector.CachedPods(ctx, claim)
	if err != nil {
		return nil, err
	}
	var names []string
	for i := range pods {
		if pods[i].Spec.NodeName == "" && !uses.HasEnded(&pods[i]) && uses.RefersTo(&pods[i], claim) {
			names = append(names, pods[i].Name)
		}
	}
	slices.Sort(names)
	switch {
	case len(names) == 0:
		return waitForConsumer(), nil
	case len(names) > maxPodsNamed:
		names = append(names[:maxPodsNamed], "and others")
	}
	return waitForScheduler(names), nil
}

// retryElsewhere handles an error of Provision. If the scheduler's node cannot have the
// volume, and another may, the scheduler has to choose again. A pod with a node name of its
// own never passes a scheduler: then the claim's condition and event have the error.
func (r *Provisioner) retryElsewhere(ctx context.Context, scope *step.Scope, cause error) (*step.Wait, error) {
	if !concernsChoice(scope, cause) {
		return waitForBackend(cause), nil
	}
	operation, err := provisioned.IntentOf(scope.Claim)
	if err != nil {
		return nil, err
	}
	// The outcome is known: nothing is in flight there any more.
	operation.Undoing, operation.Leaving, operation.Because = true, scope.Request.Node.Name, message.Cut(cause.Error(), message.MaxNote)
	return r.leaveNode(ctx, scope.Claim, operation)
}

// leaveForbiddenNode handles the refusal of a claim before its backend is called. It leaves a
// node that the scheduler chose and the class does not allow: the class was recreated with
// other zones.
func (r *Provisioner) leaveForbiddenNode(ctx context.Context, scope *step.Scope, cause error) (*step.Wait, error) {
	if !concernsChoice(scope, cause) {
		return waitForBackend(cause), nil
	}
	return r.leaveUnlessProvisioned(ctx, scope, scope.Request.Node.Name, cause.Error())
}

// concernsChoice reports whether an error means that the node of the scheduler's choice cannot
// have the volume.
func concernsChoice(scope *step.Scope, cause error) bool {
	node := NameOf(scope.Request.Node)
	refused := errors.Is(cause, backend.Exhausted) || errors.Is(cause, backend.WrongNode)
	return refused && node != "" && scope.Claim.Annotations[step.AnnSelectedNode] == node
}

// LeaveMissingNode makes the scheduler choose again if its node was deleted. The cache may not
// show a new node yet, so a live read confirms that the node is gone.
func (r *Provisioner) LeaveMissingNode(ctx context.Context, scope *step.Scope, node, placedBy string) (*step.Wait, error) {
	if scope.Claim.Annotations[step.AnnSelectedNode] != node {
		return waitForNode(node, placedBy), nil
	}
	err := r.live.Get(ctx, client.ObjectKey{Name: node}, &corev1.Node{})
	switch {
	case client.IgnoreNotFound(err) != nil:
		return nil, fmt.Errorf("reading node %s: %w", node, err)
	case err == nil:
		return &step.Wait{After: wake.AfterContention}, nil
	}
	waiting, err := r.leaveUnlessProvisioned(ctx, scope, node, "the node does not exist")
	// If the volume was provisioned in time, no other is taken.
	scope.Request.Delayed = scope.Volume != nil
	return waiting, err
}

// leaveUnlessProvisioned leaves a node, unless the volume was provisioned there in time: then that
// volume is bound. The outcome of a call that began there is unknown: it is repeated before
// its storage is removed.
func (r *Provisioner) leaveUnlessProvisioned(ctx context.Context, scope *step.Scope, node, because string) (*step.Wait, error) {
	waiting, err := r.findRecorded(ctx, scope)
	if waiting != nil || err != nil || scope.Volume != nil {
		return waiting, err
	}
	// Without a readable annotation the class names the backend.
	operation, _ := provisioned.IntentOf(scope.Claim)
	if operation.Leaving == "" {
		operation.Leaving, operation.Because = node, message.Cut(because, message.MaxNote)
	}
	return r.leaveNode(ctx, scope.Claim, operation)
}

// leaveNode gives a node up, in an order that survives a crash anywhere:
//
//	record which node, and why: the storage of this attempt is not used any more
//	remove that storage
//	remove the scheduler's choice and the pending operation from the claim, in one write
func (r *Provisioner) leaveNode(ctx context.Context, claim *corev1.PersistentVolumeClaim, operation provisioned.Intent) (*step.Wait, error) {
	if controllerutil.ContainsFinalizer(claim, stowagev1alpha1.ProvisioningFinalizer) {
		if err := r.writeOperation(ctx, claim, operation); err != nil {
			return nil, err
		}
		waiting, err := r.undo(ctx, claim)
		switch {
		case err != nil:
			return nil, err
		case waiting != nil && waiting.Retry == nil:
			wait := waitForOtherNode(operation)
			wait.After = waiting.After
			return wait, nil
		case waiting != nil:
			return waiting, nil
		}
	}
	return waitForOtherNode(operation), r.removeSelectedNode(ctx, claim, operation.Leaving)
}

// removeSelectedNode makes the scheduler choose another node, unless it has already done so.
func (r *Provisioner) removeSelectedNode(ctx context.Context, claim *corev1.PersistentVolumeClaim, node string) error {
	if provisioned.HasIntent(claim) {
		if err := r.countAttempt(ctx, claim); err != nil {
			return err
		}
	}
	before := claim.DeepCopy()
	changed := provisioned.ClearIntent(claim)
	if claim.Annotations[step.AnnSelectedNode] == node {
		delete(claim.Annotations, step.AnnSelectedNode)
		changed = true
	}
	if !changed {
		return nil
	}
	err := r.client.Patch(ctx, claim, patch.Fenced(before))
	return wrap.Error(err, "requesting another node than %s for claim %s/%s", node, claim.Namespace, claim.Name)
}

// ClaimsPlacedOn returns the unbound claims for which the scheduler chose the node.
func (r *Provisioner) ClaimsPlacedOn(ctx context.Context, node client.Object) []reconcile.Request {
	claims := &corev1.PersistentVolumeClaimList{}
	if err := r.client.List(ctx, claims, wake.Unhurried, client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "listing claims", "node", node.GetName())
	}
	return wake.Requests(slices.DeleteFunc(claims.Items, func(claim corev1.PersistentVolumeClaim) bool {
		return binder.Completed(&claim) || claim.Annotations[step.AnnSelectedNode] != node.GetName()
	}))
}

func waitForScheduler(pods []string) *step.Wait {
	return &step.Wait{
		Reason: bindable.ReasonWaitForPodScheduled, Event: event.WaitForPodScheduled,
		Message: fmt.Sprintf("waiting for the scheduler to choose a node for pod %s: the events of the pod say what it waits for", strings.Join(pods, ", ")),
	}
}

func waitForOtherNode(operation provisioned.Intent) *step.Wait {
	return &step.Wait{
		Reason: bindable.ReasonProvisioningFailed, Event: event.ProvisioningFailed, Warning: true,
		Message: fmt.Sprintf("node %s, which the scheduler chose, can't have the volume: %s; the scheduler is asked for another node", operation.Leaving, operation.Because),
	}
}
