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
	// rarely is the part of a claim's age between two attempts, if its backend is full or
	// unavailable; rarest is the longest interval.
	rarely = 4
	rarest = 5 * time.Minute
)

// report writes the condition and, if it is new, records the event.
func (r *Reconciler) report(ctx context.Context, claim *corev1.PersistentVolumeClaim, waiting *step.Wait) (ctrl.Result, error) {
	if !waiting.Patient {
		r.patience.forget(client.ObjectKeyFromObject(claim))
	} else if left := r.patience.left(client.ObjectKeyFromObject(claim)); left > 0 {
		return ctrl.Result{RequeueAfter: left}, nil
	}
	isNew, err := r.writeWait(ctx, claim, waiting)
	if err != nil {
		return ctrl.Result{}, err
	}
	if isNew && waiting.Event != "" {
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

// count counts an unbound claim as one that waits. A wait without a reason is another program's
// work, or is over at once.
func (r *Reconciler) count(claim *corev1.PersistentVolumeClaim, why *step.Wait) {
	if why.Reason == "" || binder.Completed(claim) || !claim.DeletionTimestamp.IsZero() {
		r.waiting.Forget(client.ObjectKeyFromObject(claim))
		return
	}
	r.waiting.Set(client.ObjectKeyFromObject(claim), why.Reason, claim.CreationTimestamp.Time)
}

// writeWait reports whether to record an event: there is another reason, or another warning. A
// change of the volumes that do not fit changes the condition alone. In scope=classes
// kube-controller-manager owns the conditions. The condition of a bound claim stays True,
// whatever else is being cleaned up.
func (r *Reconciler) writeWait(ctx context.Context, claim *corev1.PersistentVolumeClaim, waiting *step.Wait) (isNew bool, err error) {
	if r.scope == reconciler.ClassesScope || binder.Completed(claim) && waiting.Phase == "" {
		return r.recorded.IsNew(client.ObjectKeyFromObject(claim), waiting.Message), nil
	}
	if waiting.Yields && bindable.Reason(claim) == bindable.ReasonProvisioningFailed {
		return false, nil
	}
	before := claim.DeepCopy()
	changed := false
	if waiting.Reason != "" {
		changed = bindable.Set(claim, corev1.PersistentVolumeClaimCondition{
			Status: corev1.ConditionFalse, Reason: waiting.Reason, Message: waiting.Message,
		})
		isNew = changed && (waiting.Warning && !waiting.Counts || bindable.Reason(before) != waiting.Reason)
	}
	changed = clearVolume(&claim.Status) || changed
	// An unbound claim is Pending, whatever its status said before.
	if phase := cmp.Or(waiting.Phase, corev1.ClaimPending); claim.Status.Phase != phase {
		claim.Status.Phase = phase
		changed, isNew = true, true
	}
	if !changed {
		return false, nil
	}
	if err := r.client.Status().Patch(ctx, claim, patch.ClaimStatus(before)); err != nil {
		return false, fmt.Errorf("writing why claim %s/%s waits: %w", claim.Namespace, claim.Name, err)
	}
	return isNew, nil
}

// clearVolume removes, in memory, the volume's fields from the status of an unbound claim, and
// reports whether there were any.
func clearVolume(status *corev1.PersistentVolumeClaimStatus) bool {
	if status.Capacity == nil && status.AccessModes == nil && status.CurrentVolumeAttributesClassName == nil {
		return false
	}
	status.Capacity, status.AccessModes, status.CurrentVolumeAttributesClassName = nil, nil, nil
	return true
}
