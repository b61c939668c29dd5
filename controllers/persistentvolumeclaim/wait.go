package persistentvolumeclaim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/bindable"
	"github.com/stowage-dev/stowage/internal/binder"
	"github.com/stowage-dev/stowage/internal/patch"
	"github.com/stowage-dev/stowage/internal/storageclass"
	"github.com/stowage-dev/stowage/internal/wake"
)

// wait says why a claim can't go on now: what its condition and its event tell,
// and what makes Stowage look again.
type wait struct {
	// reason and message of the condition Bindable.
	reason, message string
	// event is the reason of the event; empty where none is due.
	event string
	// warning events tell of what somebody has to mend.
	warning bool
	// phase of the claim meanwhile.
	phase corev1.PersistentVolumeClaimPhase
	// after is when to look again. Zero: when something changes.
	after time.Duration
	// rarer has a claim look again the more rarely, the older it is.
	rarer bool
	// counts tells that the message counts volumes, which come and go: that alone is no
	// news.
	counts bool
	// patient waits are told only once they have lasted: mostly they are over sooner.
	patient bool
	// yields keeps a failure that was told before: nothing else is known yet.
	yields bool
	// retry is an error after which to look again, ever more slowly.
	retry error
}

const (
	ProvisioningFailed = "ProvisioningFailed"

	// rarely is after which part of its age a claim whose backend has no room, or
	// is away, asks again; rarest is the longest.
	rarely = 4
	rarest = 5 * time.Minute
)

// tell writes the condition and, where it says something new, sends the event.
func (r *Reconciler) tell(ctx context.Context, claim *corev1.PersistentVolumeClaim, waiting *wait) (ctrl.Result, error) {
	if !waiting.patient {
		r.patience.forget(client.ObjectKeyFromObject(claim))
	} else if left := r.patience.left(client.ObjectKeyFromObject(claim)); left > 0 {
		return ctrl.Result{RequeueAfter: left}, nil
	}
	news, err := r.writeWait(ctx, claim, waiting)
	if err != nil {
		return ctrl.Result{}, err
	}
	if news && waiting.event != "" {
		kind := corev1.EventTypeNormal
		if waiting.warning {
			kind = corev1.EventTypeWarning
		}
		r.events.Eventf(claim, nil, kind, waiting.event, "Bind", "%s", waiting.message)
	}
	if waiting.retry != nil {
		return ctrl.Result{}, waiting.retry
	}
	if waiting.rarer {
		waiting.after = max(waiting.after, min(time.Since(claim.CreationTimestamp.Time)/rarely, rarest))
	}
	return ctrl.Result{RequeueAfter: waiting.after}, nil
}

// writeWait tells whether it is news: another reason, or another warning. That the
// volumes which don't fit are others now changes the condition alone. In
// scope=classes conditions are the binder's; and of a bound claim the condition is
// True, whatever else is being cleaned up.
func (r *Reconciler) writeWait(ctx context.Context, claim *corev1.PersistentVolumeClaim, waiting *wait) (news bool, err error) {
	if r.scope == reconciler.ClassesScope || binder.Completed(claim) && waiting.phase == "" {
		return r.told.IsNews(client.ObjectKeyFromObject(claim), waiting.message), nil
	}
	if waiting.yields && bindable.Reason(claim) == ProvisioningFailed {
		return false, nil
	}
	before := claim.DeepCopy()
	changed := false
	if waiting.reason != "" {
		changed = bindable.Set(claim, corev1.PersistentVolumeClaimCondition{
			Status: corev1.ConditionFalse, Reason: waiting.reason, Message: waiting.message,
		})
		news = changed && (waiting.warning && !waiting.counts || bindable.Reason(before) != waiting.reason)
	}
	changed = clearVolume(&claim.Status) || changed
	// A claim that isn't bound is Pending, whatever somebody wrote before.
	if phase := cmp.Or(waiting.phase, corev1.ClaimPending); claim.Status.Phase != phase {
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

func boundCondition(pv *corev1.PersistentVolume) corev1.PersistentVolumeClaimCondition {
	return corev1.PersistentVolumeClaimCondition{
		Status: corev1.ConditionTrue, Reason: "Bound", Message: "bound to volume " + pv.Name,
	}
}

func waitForNode(name, placedBy string) *wait {
	return &wait{
		reason: "NodeNotFound", event: ProvisioningFailed, warning: true,
		message: fmt.Sprintf("%s chose node %s, which does not exist: place the pod on another node, or register that one", placedBy, name),
	}
}

func waitForConsumer() *wait {
	return &wait{
		reason: "WaitForFirstConsumer", event: "WaitForFirstConsumer",
		message: "waiting for first consumer to be created before binding: create a pod that uses this claim",
	}
}

func waitForMissingVolume(claim *corev1.PersistentVolumeClaim) *wait {
	return &wait{
		reason: "VolumeNotFound", event: "FailedBinding",
		message: fmt.Sprintf("volume %q, which the claim asks for by spec.volumeName, does not exist: "+
			"create it, or create the claim without volumeName", claim.Spec.VolumeName),
	}
}

func waitForNamedVolume(claim *corev1.PersistentVolumeClaim, cause binder.Cause) *wait {
	if cause == binder.Taken {
		return &wait{
			reason: "VolumeReserved", after: wake.AfterContention,
			message: fmt.Sprintf("volume %q, which the claim asks for by spec.volumeName, is being bound to another claim", claim.Spec.VolumeName),
		}
	}
	if cause == binder.Reserved {
		return &wait{
			reason: "VolumeReserved", event: "FailedBinding", warning: true,
			message: fmt.Sprintf("volume %q, which the claim asks for by spec.volumeName, is bound or reserved to another claim",
				claim.Spec.VolumeName),
		}
	}
	return &wait{
		reason: "VolumeMismatch", event: "VolumeMismatch", warning: true,
		message: fmt.Sprintf("volume %q, which the claim asks for by spec.volumeName, does not fit: %s (the claim asks for %s)",
			claim.Spec.VolumeName, cause, binder.Bytes(binder.RequestOf(claim))),
	}
}

func waitForLostVolume(claim *corev1.PersistentVolumeClaim) *wait {
	return &wait{
		reason: "VolumeLost", event: "ClaimLost", warning: true, phase: corev1.ClaimLost,
		message: fmt.Sprintf("bound claim has lost its volume %s, and the data on it: no such PersistentVolume exists", claim.Spec.VolumeName),
	}
}

func waitForMisboundVolume(claim *corev1.PersistentVolumeClaim, pv *corev1.PersistentVolume) *wait {
	ref := pv.Spec.ClaimRef
	return &wait{
		reason: "VolumeMisbound", event: "ClaimMisbound", warning: true, phase: corev1.ClaimLost,
		message: fmt.Sprintf("volume %s is bound to claim %s/%s, uid %s, and not to this one, uid %s",
			pv.Name, ref.Namespace, ref.Name, ref.UID, claim.UID),
	}
}

// waitUnmatched says why no volume fits and none is made.
func (r *Reconciler) waitUnmatched(scope *ClaimScope) *wait {
	why := r.Index.Explain(scope.wish)
	name := storageclass.Of(scope.Claim)
	switch {
	case name == "":
		why += "; create a volume that fits, or name a StorageClass that makes volumes"
	case scope.Class == nil:
		why += fmt.Sprintf("; and there is no StorageClass %q that could make one: create a volume that fits, or the StorageClass", name)
	default:
		why += fmt.Sprintf("; StorageClass %q makes none: create a volume that fits", name)
	}
	waiting := waitForVolume(why)
	if scope.Class == nil && name != "" {
		waiting.event, waiting.warning, waiting.counts = ProvisioningFailed, true, true
	}
	waiting.after = r.refresh.left(name)
	return waiting
}

func waitForVolume(why string) *wait {
	return &wait{reason: "NoMatchingVolume", event: "FailedBinding", message: why}
}

// waitForOldVolume says why a claim doesn't get a volume object that goes.
func waitForOldVolume(pv *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) *wait {
	reason, message := bindable.OldVolume(pv, claim)
	return &wait{reason: reason, event: ProvisioningFailed, warning: true, message: message}
}

func waitForForeignProvisioner(driver string) *wait {
	return &wait{
		reason: "ExternalProvisioning", event: "ExternalProvisioning",
		message: fmt.Sprintf("waiting for a volume to be created by the external provisioner %q", driver),
	}
}

// waitForBackend says what a backend's error means for the claim.
func waitForBackend(err error) *wait {
	if backend.Unfinished(err) {
		return &wait{
			reason: "Provisioning", event: "Provisioning", message: err.Error(),
			after: wake.WithoutAnswer, yields: errors.Is(err, backend.Queued), patient: true,
		}
	}
	failed := &wait{reason: ProvisioningFailed, message: err.Error(), event: ProvisioningFailed, warning: true}
	switch backend.KindOf(err) {
	case backend.Invalid, backend.Conflict, backend.WrongNode:
		// Nothing but a change of an object that the claim watches helps.
	case backend.Exhausted, backend.Unavailable:
		failed.after, failed.rarer = wake.WithoutAnswer, true
		failed.message += fmt.Sprintf(" (tried again every %s, and more rarely later)", wake.WithoutAnswer)
	default:
		failed.retry = err
		failed.message += " (tried again, ever more slowly)"
	}
	return failed
}

// waitForGoneProvisioner says that no program makes volumes of a class. A volume of the
// class that comes wakes the claim.
func waitForGoneProvisioner(class *storagev1.StorageClass) *wait {
	return &wait{
		reason: ProvisioningFailed, event: ProvisioningFailed, warning: true,
		message: fmt.Sprintf("StorageClass %q has the provisioner %s, which is not part of Kubernetes, and which no CSI driver took over: "+
			"create the claim with another class, or create a volume that fits", class.Name, class.Provisioner),
	}
}

func waitForNoExpander(claim *corev1.PersistentVolumeClaim, pv *corev1.PersistentVolume) *wait {
	has := claim.Status.Capacity[corev1.ResourceStorage]
	return &wait{
		event: "VolumeResizeFailed", warning: true,
		message: fmt.Sprintf("no driver grows volume %s: create a larger claim and copy the data, and set the request of this one back to %s",
			pv.Name, has.String()),
	}
}

func waitForForeignExpander() *wait {
	return &wait{event: "ExternalExpanding", message: "waiting for an external controller to expand this claim's volume"}
}

func waitForAllowance(class *storagev1.StorageClass) *wait {
	return &wait{
		event: "VolumeResizeFailed", warning: true, after: wake.WithoutAnswer,
		message: fmt.Sprintf("StorageClass %s does not let claims grow: set its allowVolumeExpansion, in the StorageBackend where Stowage keeps the class", class.Name),
	}
}

// waitAfterFailedExpansion says when a failed growth is tried again: an infeasible
// one not before its request is changed.
func waitAfterFailedExpansion(err error) *wait {
	switch kind := backend.KindOf(err); {
	case isInfeasible(err):
		return nil
	case kind == backend.Exhausted || kind == backend.Unavailable:
		return &wait{after: wake.WithoutAnswer}
	default:
		return &wait{retry: err}
	}
}
