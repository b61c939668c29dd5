package binding

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-dev/stowage/controllers/persistentvolumeclaim/step"
	"github.com/stowage-dev/stowage/internal/bindable"
	"github.com/stowage-dev/stowage/internal/binder"
	"github.com/stowage-dev/stowage/internal/event"
	"github.com/stowage-dev/stowage/internal/wake"
)

func waitForMissingVolume(claim *corev1.PersistentVolumeClaim) *step.Wait {
	return &step.Wait{
		Reason: bindable.ReasonVolumeNotFound, Event: event.FailedBinding,
		Message: fmt.Sprintf("volume %q, which the claim asks for by spec.volumeName, does not exist: "+
			"create it, or create the claim without volumeName", claim.Spec.VolumeName),
	}
}

func waitForNamedVolume(claim *corev1.PersistentVolumeClaim, cause binder.Cause) *step.Wait {
	if cause == binder.BeingBound {
		return &step.Wait{
			Reason: bindable.ReasonVolumeReserved, After: wake.AfterContention,
			Message: fmt.Sprintf("volume %q, which the claim asks for by spec.volumeName, is being bound to another claim", claim.Spec.VolumeName),
		}
	}
	if cause == binder.Reserved {
		return &step.Wait{
			Reason: bindable.ReasonVolumeReserved, Event: event.FailedBinding, Warning: true,
			Message: fmt.Sprintf("volume %q, which the claim asks for by spec.volumeName, is bound or reserved to another claim",
				claim.Spec.VolumeName),
		}
	}
	return &step.Wait{
		Reason: bindable.ReasonVolumeMismatch, Event: event.VolumeMismatch, Warning: true,
		Message: fmt.Sprintf("volume %q, which the claim asks for by spec.volumeName, does not fit: %s (the claim asks for %s)",
			claim.Spec.VolumeName, cause, binder.Bytes(binder.RequestOf(claim))),
	}
}

func waitForLostVolume(claim *corev1.PersistentVolumeClaim) *step.Wait {
	return &step.Wait{
		Reason: bindable.ReasonVolumeLost, Event: event.ClaimLost, Warning: true, Phase: corev1.ClaimLost,
		Message: fmt.Sprintf("bound claim has lost its volume %s, and the data on it: no such PersistentVolume exists", claim.Spec.VolumeName),
	}
}

func waitForMisboundVolume(claim *corev1.PersistentVolumeClaim, pv *corev1.PersistentVolume) *step.Wait {
	ref := pv.Spec.ClaimRef
	return &step.Wait{
		Reason: bindable.ReasonVolumeMisbound, Event: event.ClaimMisbound, Warning: true, Phase: corev1.ClaimLost,
		Message: fmt.Sprintf("volume %s is bound to claim %s/%s, uid %s, and not to this one, uid %s",
			pv.Name, ref.Namespace, ref.Name, ref.UID, claim.UID),
	}
}

func boundCondition(pv *corev1.PersistentVolume) corev1.PersistentVolumeClaimCondition {
	return corev1.PersistentVolumeClaimCondition{
		Status: corev1.ConditionTrue, Reason: bindable.ReasonBound, Message: "bound to volume " + pv.Name,
	}
}
