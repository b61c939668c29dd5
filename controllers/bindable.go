package controllers

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"fmt"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/message"

	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-dev/stowage/internal/binder"
)

// oldVolume says why a claim doesn't get a volume object that is being deleted.
func oldVolume(pv *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) (reason, message string) {
	const terminating = "VolumeTerminating"
	switch {
	case madeFor(pv, claim):
		return terminating, fmt.Sprintf("volume %s, which was made for this claim, is being deleted: another is made once it is gone", pv.Name)
	case binder.TiedTo(pv, claim):
		return terminating, fmt.Sprintf("volume %s, which is reserved for this claim, is being deleted: the claim gets another that fits", pv.Name)
	default:
		return terminating, fmt.Sprintf("volume %s, which has the name of the volume that is made for this claim, and isn't that, is being deleted: "+
			"the claim gets its own once it is gone", pv.Name)
	}
}

// setBindable sets the condition in memory and tells whether it changed.
func setBindable(claim *corev1.PersistentVolumeClaim, condition corev1.PersistentVolumeClaimCondition) bool {
	condition.Type = stowagev1alpha1.BindableCondition
	return setClaimCondition(claim, condition)
}

// setClaimCondition sets any condition in memory and tells whether it changed. When
// it was probed last is when it was last written: kubectl shows both times.
func setClaimCondition(claim *corev1.PersistentVolumeClaim, condition corev1.PersistentVolumeClaimCondition) bool {
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

// bindableReason is why the claim was last said to wait.
func bindableReason(claim *corev1.PersistentVolumeClaim) string {
	for _, condition := range claim.Status.Conditions {
		if condition.Type == stowagev1alpha1.BindableCondition {
			return condition.Reason
		}
	}
	return ""
}
