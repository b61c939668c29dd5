package persistentvolumeclaim

import (
	"cmp"
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/controllers/persistentvolumeclaim/step"
	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/internal/bindable"
	"github.com/stowage-dev/stowage/internal/binder"
	"github.com/stowage-dev/stowage/internal/patch"
)

const (
	// rarely is after which part of its age a claim whose backend has no room, or
	// is away, asks again; rarest is the longest.
	rarely = 4
	rarest = 5 * time.Minute
)

// tell writes the condition and, where it says something new, sends the event.
func (r *Reconciler) tell(ctx context.Context, claim *corev1.PersistentVolumeClaim, waiting *step.Wait) (ctrl.Result, error) {
	if !waiting.Patient {
		r.patience.forget(client.ObjectKeyFromObject(claim))
	} else if left := r.patience.left(client.ObjectKeyFromObject(claim)); left > 0 {
		return ctrl.Result{RequeueAfter: left}, nil
	}
	news, err := r.writeWait(ctx, claim, waiting)
	if err != nil {
		return ctrl.Result{}, err
	}
	if news && waiting.Event != "" {
		kind := corev1.EventTypeNormal
		if waiting.Warning {
			kind = corev1.EventTypeWarning
		}
		r.events.Eventf(claim, nil, kind, waiting.Event, "Bind", "%s", waiting.Message)
	}
	if waiting.Retry != nil {
		return ctrl.Result{}, waiting.Retry
	}
	if waiting.Rarer {
		waiting.After = max(waiting.After, min(time.Since(claim.CreationTimestamp.Time)/rarely, rarest))
	}
	return ctrl.Result{RequeueAfter: waiting.After}, nil
}

// writeWait tells whether it is news: another reason, or another warning. That the
// volumes which don't fit are others now changes the condition alone. In
// scope=classes conditions are the binder's; and of a bound claim the condition is
// True, whatever else is being cleaned up.
func (r *Reconciler) writeWait(ctx context.Context, claim *corev1.PersistentVolumeClaim, waiting *step.Wait) (news bool, err error) {
	if r.scope == reconciler.ClassesScope || binder.Completed(claim) && waiting.Phase == "" {
		return r.told.IsNews(client.ObjectKeyFromObject(claim), waiting.Message), nil
	}
	if waiting.Yields && bindable.Reason(claim) == step.ProvisioningFailed {
		return false, nil
	}
	before := claim.DeepCopy()
	changed := false
	if waiting.Reason != "" {
		changed = bindable.Set(claim, corev1.PersistentVolumeClaimCondition{
			Status: corev1.ConditionFalse, Reason: waiting.Reason, Message: waiting.Message,
		})
		news = changed && (waiting.Warning && !waiting.Counts || bindable.Reason(before) != waiting.Reason)
	}
	changed = clearVolume(&claim.Status) || changed
	// A claim that isn't bound is Pending, whatever somebody wrote before.
	if phase := cmp.Or(waiting.Phase, corev1.ClaimPending); claim.Status.Phase != phase {
		claim.Status.Phase = phase
		changed, news = true, true
	}
	if !changed {
		return false, nil
	}
	if err := r.client.Status().Patch(ctx, claim, patch.ClaimStatus(before)); err != nil {
		return false, fmt.Errorf("writing why claim %s/%s waits: %w", claim.Namespace, claim.Name, err)
	}
	return news, nil
}

// clearVolume removes, in memory, what a claim that is not bound says of its volume, and
// reports whether it said anything.
func clearVolume(status *corev1.PersistentVolumeClaimStatus) bool {
	if status.Capacity == nil && status.AccessModes == nil && status.CurrentVolumeAttributesClassName == nil {
		return false
	}
	status.Capacity, status.AccessModes, status.CurrentVolumeAttributesClassName = nil, nil, nil
	return true
}
