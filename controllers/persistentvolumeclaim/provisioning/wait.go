package provisioning

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-dev/stowage/controllers/persistentvolumeclaim/step"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/bindable"
	"github.com/stowage-dev/stowage/internal/event"
	"github.com/stowage-dev/stowage/internal/storageclass"
	"github.com/stowage-dev/stowage/internal/wake"
)

func waitForNode(name, placedBy string) *step.Wait {
	return &step.Wait{
		Reason: bindable.ReasonNodeNotFound, Event: event.ProvisioningFailed, Warning: true,
		Message: fmt.Sprintf("%s chose node %s, which does not exist: place the pod on another node, or register that one", placedBy, name),
	}
}

func waitForConsumer() *step.Wait {
	return &step.Wait{
		Reason: bindable.ReasonWaitForFirstConsumer, Event: event.WaitForFirstConsumer,
		Message: "waiting for first consumer to be created before binding: create a pod that uses this claim",
	}
}

func waitForBackend(err error) *step.Wait {
	if backend.Unfinished(err) {
		return &step.Wait{
			Reason: bindable.ReasonProvisioning, Event: event.Provisioning, Message: err.Error(),
			After: wake.WithoutAnswer, Yields: errors.Is(err, backend.Queued), Patient: true,
		}
	}
	failed := &step.Wait{Reason: bindable.ReasonProvisioningFailed, Message: err.Error(), Event: event.ProvisioningFailed, Warning: true}
	switch backend.KindOf(err) {
	case backend.Invalid, backend.Conflict, backend.WrongNode:
		// Only a change of an object that the claim watches helps.
	case backend.Exhausted, backend.Unavailable:
		failed.After, failed.Rarer = wake.WithoutAnswer, true
		failed.Message += fmt.Sprintf(" (tried again every %s, and more rarely later)", wake.WithoutAnswer)
	default:
		failed.Retry = err
		failed.Message += " (tried again, ever more slowly)"
	}
	return failed
}

// waitForOldVolume explains why a claim does not get a volume that is being deleted.
func waitForOldVolume(pv *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) *step.Wait {
	reason, message := bindable.OldVolume(pv, claim)
	return &step.Wait{Reason: reason, Event: event.ProvisioningFailed, Warning: true, Message: message}
}

func waitForVolume(why string) *step.Wait {
	return &step.Wait{Reason: bindable.ReasonNoMatchingVolume, Event: event.FailedBinding, Message: why}
}

// waitUnmatched explains why no volume fits and none is provisioned.
func (r *Provisioner) waitUnmatched(scope *step.Scope) *step.Wait {
	why := r.index.Explain(scope.Request)
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
		waiting.Event, waiting.Warning, waiting.Counts = event.ProvisioningFailed, true, true
	}
	waiting.After = r.untilRefresh(name)
	return waiting
}
