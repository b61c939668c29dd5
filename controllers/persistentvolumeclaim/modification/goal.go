package modification

import (
	"errors"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/bindable"
)

// retryInfeasible is how long a target rests that the storage refused: only a person makes it feasible,
// and no object shows it.
const retryInfeasible = 5 * time.Minute

// isDue reports whether the volume of a claim is to be changed, or a change of it has an open end.
func isDue(claim *corev1.PersistentVolumeClaim) bool {
	requested, status := requestedBy(claim), claim.Status.ModifyVolumeStatus
	switch {
	case claim.Status.Phase != corev1.ClaimBound:
		return false
	case status == nil:
		return requested != "" && requested != ptr.Deref(claim.Status.CurrentVolumeAttributesClassName, "")
	default:
		return true
	}
}

// restOf returns how long an infeasible target rests, unless the claim names another: 0 for not at all.
func restOf(claim *corev1.PersistentVolumeClaim, now time.Time) time.Duration {
	status := claim.Status.ModifyVolumeStatus
	if !isRefused(status, requestedBy(claim)) {
		return 0
	}
	for _, condition := range claim.Status.Conditions {
		if condition.Type == corev1.PersistentVolumeClaimVolumeModifyVolumeError {
			return max(0, condition.LastProbeTime.Add(retryInfeasible).Sub(now))
		}
	}
	return 0
}

// isRefused reports whether a target is recorded as infeasible.
func isRefused(status *corev1.ModifyVolumeStatus, target string) bool {
	return status != nil && status.Status == corev1.PersistentVolumeClaimModifyVolumeInfeasible && status.TargetVolumeAttributesClassName == target
}

// goalOf returns the class that a volume is to be changed to: "" where the claim names none any more.
// A target whose outcome is unknown comes first: two changes at once could leave a mixture.
func goalOf(claim *corev1.PersistentVolumeClaim) string {
	if mayStillApply(claim) {
		return claim.Status.ModifyVolumeStatus.TargetVolumeAttributesClassName
	}
	return requestedBy(claim)
}

// mayStillApply reports whether the recorded target may be applied, or come to be, by an earlier
// call. Before each call that follows a refusal, the claim records that the refusal is no longer the
// last word.
func mayStillApply(claim *corev1.PersistentVolumeClaim) bool {
	status := claim.Status.ModifyVolumeStatus
	return status != nil && status.Status == corev1.PersistentVolumeClaimModifyVolumeInProgress && status.TargetVolumeAttributesClassName != "" &&
		!slices.ContainsFunc(claim.Status.Conditions, func(condition corev1.PersistentVolumeClaimCondition) bool {
			return condition.Type == corev1.PersistentVolumeClaimVolumeModifyingVolume && condition.Reason == bindable.ReasonModifyRetry
		})
}

// isInfeasible reports whether the volume can't have the attributes.
func isInfeasible(err error) bool { return errors.Is(err, backend.Invalid) }

// isFinal reports whether after an error nothing goes on, of this call or an earlier one.
func isFinal(err error) bool {
	return slices.Contains([]backend.ErrorKind{backend.Invalid, backend.NotFound, backend.Conflict, backend.NotReady}, backend.KindOf(err))
}

func requestedBy(claim *corev1.PersistentVolumeClaim) string {
	return ptr.Deref(claim.Spec.VolumeAttributesClassName, "")
}
