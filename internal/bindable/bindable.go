// Package bindable sets the condition Bindable and other conditions of claims, in memory: why
// a claim waits, cut to the limits of the API. Callers write the status.
package bindable

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/binder"
	"github.com/stowage-dev/stowage/internal/message"
	"github.com/stowage-dev/stowage/internal/provisioned"
)

// OldVolume returns why a claim does not get a volume that is being deleted.
func OldVolume(pv *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) (reason, message string) {
	switch {
	case provisioned.MadeFor(pv, claim):
		return ReasonVolumeTerminating, fmt.Sprintf("volume %s, which was made for this claim, is being deleted: another is made once it is gone", pv.Name)
	case binder.TiedTo(pv, claim):
		return ReasonVolumeTerminating, fmt.Sprintf("volume %s, which is reserved for this claim, is being deleted: the claim gets another that fits", pv.Name)
	default:
		return ReasonVolumeTerminating, fmt.Sprintf("volume %s, which has the name of the volume that is made for this claim, and isn't that, is being deleted: "+
			"the claim gets its own once it is gone", pv.Name)
	}
}

// Set sets the condition in memory and reports whether it changed.
func Set(claim *corev1.PersistentVolumeClaim, condition corev1.PersistentVolumeClaimCondition) bool {
	condition.Type = stowagev1alpha1.BindableCondition
	return SetCondition(claim, condition)
}

// SetCondition sets any condition in memory and reports whether it changed. The time of the
// last probe is that of the last write: kubectl shows both times.
func SetCondition(claim *corev1.PersistentVolumeClaim, condition corev1.PersistentVolumeClaimCondition) bool {
	condition.Message = message.Cut(condition.Message, message.MaxCondition)
	for i, known := range claim.Status.Conditions {
		if known.Type != condition.Type {
			continue
		}
		if known.Status == condition.Status && known.Reason == condition.Reason && known.Message == condition.Message {
			return false
		}
		condition.LastProbeTime = metav1.Now()
		condition.LastTransitionTime = known.LastTransitionTime
		if known.Status != condition.Status {
			condition.LastTransitionTime = condition.LastProbeTime
		}
		claim.Status.Conditions[i] = condition
		return true
	}
	condition.LastProbeTime = metav1.Now()
	condition.LastTransitionTime = condition.LastProbeTime
	claim.Status.Conditions = append(claim.Status.Conditions, condition)
	return true
}

// RemoveConditions removes conditions of these types, in memory.
func RemoveConditions(claim *corev1.PersistentVolumeClaim, kinds ...corev1.PersistentVolumeClaimConditionType) {
	claim.Status.Conditions = slices.DeleteFunc(claim.Status.Conditions, func(condition corev1.PersistentVolumeClaimCondition) bool {
		return slices.Contains(kinds, condition.Type)
	})
}

// Reason returns the reason of the condition Bindable, or "".
func Reason(claim *corev1.PersistentVolumeClaim) string {
	for _, condition := range claim.Status.Conditions {
		if condition.Type == stowagev1alpha1.BindableCondition {
			return condition.Reason
		}
	}
	return ""
}
