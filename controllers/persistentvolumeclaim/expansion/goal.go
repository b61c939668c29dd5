package expansion

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/stowage-dev/stowage/internal/backend"
)

// RequestsMore reports whether a bound claim requests more than it has.
func RequestsMore(claim *corev1.PersistentVolumeClaim) bool {
	has, bound := claim.Status.Capacity[corev1.ResourceStorage]
	return bound && claim.Status.Phase == corev1.ClaimBound && has.Cmp(requested(claim)) < 0
}

// mayExpand reports whether the manager must act on a claim that requests more. It must not
// while a node grows the file system, nor on an infeasible request that has not changed.
func mayExpand(claim *corev1.PersistentVolumeClaim) bool {
	switch ResizeStatus(claim) {
	case corev1.PersistentVolumeClaimNodeResizePending, corev1.PersistentVolumeClaimNodeResizeInProgress:
		return false
	case corev1.PersistentVolumeClaimControllerResizeInfeasible, corev1.PersistentVolumeClaimNodeResizeInfeasible:
		tried, known := claim.Status.AllocatedResources[corev1.ResourceStorage]
		return !known || tried.Cmp(requested(claim)) != 0
	default:
		return true
	}
}

// goalOf returns the target capacity of a claim's volume. A size that is in flight in the
// backend comes first until its outcome is known. Otherwise a claim could get a large size,
// and then request less and count for less. A volume never shrinks.
func goalOf(claim *corev1.PersistentVolumeClaim, pv *corev1.PersistentVolume) resource.Quantity {
	goal := requested(claim)
	tried, known := claim.Status.AllocatedResources[corev1.ResourceStorage]
	if known && ResizeStatus(claim) == corev1.PersistentVolumeClaimControllerResizeInProgress && !hasFailed(claim) {
		goal = tried
	}
	if has := pv.Spec.Capacity[corev1.ResourceStorage]; goal.Cmp(has) < 0 {
		goal = has
	}
	return goal
}

// hasFailed reports whether the backend's last answer was that the volume did not change.
func hasFailed(claim *corev1.PersistentVolumeClaim) bool {
	return slices.ContainsFunc(claim.Status.Conditions, func(condition corev1.PersistentVolumeClaimCondition) bool {
		return condition.Type == corev1.PersistentVolumeClaimControllerResizeError && condition.Status == corev1.ConditionTrue &&
			condition.Reason == string(backend.Exhausted)
	})
}

// isInfeasible reports whether a retry of the same request cannot succeed.
func isInfeasible(err error) bool {
	return slices.Contains([]backend.ErrorKind{backend.Invalid, backend.Conflict, backend.NotFound}, backend.KindOf(err))
}

func requested(claim *corev1.PersistentVolumeClaim) resource.Quantity {
	return claim.Spec.Resources.Requests[corev1.ResourceStorage]
}

// ResizeStatus returns the state of a claim's expansion; empty if there is none.
func ResizeStatus(claim *corev1.PersistentVolumeClaim) corev1.ClaimResourceStatus {
	return claim.Status.AllocatedResourceStatuses[corev1.ResourceStorage]
}
