package local

import (
	"cmp"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
)

// outcome is what the agent reported: nil where the volume was made.
func outcome(volume *stowagev1alpha1.NodeVolume) error {
	provisioned := meta.FindStatusCondition(volume.Status.Conditions, stowagev1alpha1.ProvisionedCondition)
	if provisioned == nil {
		return backend.InProgress.Errorf("waiting for the agent of node %s to make volume %s", volume.Spec.NodeName, volume.Name)
	}
	if provisioned.Status == metav1.ConditionTrue {
		ready := meta.FindStatusCondition(volume.Status.Conditions, stowagev1alpha1.ReadyCondition)
		if ready != nil && ready.Reason == stowagev1alpha1.ReasonLost {
			return backend.Invalid.Errorf("volume %s was lost before it was used: %s", volume.Name, ready.Message)
		}
		return nil
	}
	return kindOf(provisioned.Reason).Errorf("node %s: %s", volume.Spec.NodeName, provisioned.Message)
}

// kindOf is the kind of error that a reason of the agent means.
func kindOf(reason string) backend.ErrorKind {
	kind := map[string]backend.ErrorKind{
		stowagev1alpha1.ReasonExhausted:       backend.Exhausted,
		stowagev1alpha1.ReasonInvalid:         backend.Invalid,
		stowagev1alpha1.ReasonNotSupported:    backend.Invalid,
		stowagev1alpha1.ReasonPathOutsideBase: backend.Invalid,
		stowagev1alpha1.ReasonUnavailable:     backend.Unavailable,
	}[reason]
	return cmp.Or(kind, backend.InProgress)
}

// lastMessage is the latest report about a volume that is being removed: that its node is gone, or
// what the agent reported, if it did.
func lastMessage(volume *stowagev1alpha1.NodeVolume) string {
	if gone := meta.FindStatusCondition(volume.Status.Conditions, stowagev1alpha1.NodeGoneCondition); gone != nil {
		return ": " + gone.Message
	}
	ready := meta.FindStatusCondition(volume.Status.Conditions, stowagev1alpha1.ReadyCondition)
	if ready == nil || ready.Status == metav1.ConditionTrue || ready.Message == "" {
		return ""
	}
	return ": " + ready.Message
}
