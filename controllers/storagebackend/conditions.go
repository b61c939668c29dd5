package storagebackend

import (
	"errors"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/message"
)

// setOutcome turns the outcome of a check into a condition.
func setOutcome(object *stowagev1alpha1.StorageBackend, condition string, err error) {
	if err == nil {
		setCondition(object, condition, metav1.ConditionTrue, stowagev1alpha1.ReasonReady, "")
		return
	}
	reason := stowagev1alpha1.ReasonUnavailable
	if errors.Is(err, backend.Invalid) {
		reason = stowagev1alpha1.ReasonInvalid
	}
	setCondition(object, condition, metav1.ConditionFalse, reason, err.Error())
}

// setReady combines the named conditions: the first that is not True decides.
func setReady(object *stowagev1alpha1.StorageBackend) {
	for _, name := range []string{
		stowagev1alpha1.AcceptedCondition, stowagev1alpha1.ReachableCondition, stowagev1alpha1.StorageClassReadyCondition,
	} {
		if named := meta.FindStatusCondition(object.Status.Conditions, name); named != nil && named.Status != metav1.ConditionTrue {
			setCondition(object, stowagev1alpha1.ReadyCondition, metav1.ConditionFalse, named.Reason, named.Message)
			return
		}
	}
	setCondition(object, stowagev1alpha1.ReadyCondition, metav1.ConditionTrue, stowagev1alpha1.ReasonReady, "volumes can be provisioned")
}

func setCondition(object *stowagev1alpha1.StorageBackend, name string, status metav1.ConditionStatus, reason, text string) {
	meta.SetStatusCondition(&object.Status.Conditions, metav1.Condition{
		Type: name, Status: status, Reason: reason, Message: message.Cut(text, message.MaxCondition), ObservedGeneration: object.Generation,
	})
}
