package expansion

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/stowage-dev/stowage/internal/backend"
)

// asksForMore tells whether a bound claim asks for more than it has.
func asksForMore(claim *corev1.PersistentVolumeClaim) bool {
	has, bound := claim.Status.Capacity[corev1.ResourceStorage]
	return bound && claim.Status.Phase == corev1.ClaimBound && has.Cmp(requested(claim)) < 0
}

// mayExpand tells whether the manager has to do with a claim that asks for more: not
// while a node grows the file system, and not with a request that is known to fail,
// until it is changed.
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

// goalOf is the capacity that a claim's volume is to have. A size that a backend was
// asked for comes first until its outcome is known: else a claim could be given much
// and ask, and be counted, for less. A volume never shrinks.
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

// hasFailed tells whether the last answer of the backend was that the volume is as
// it was.
func hasFailed(claim *corev1.PersistentVolumeClaim) bool {
	return slices.ContainsFunc(claim.Status.Conditions, func(condition corev1.PersistentVolumeClaimCondition) bool {
		return condition.Type == corev1.PersistentVolumeClaimControllerResizeError && condition.Status == corev1.ConditionTrue &&
			condition.Reason == string(backend.Exhausted)
	})
}

// isInfeasible tells of an error that no repeat of the same request mends.
func isInfeasible(err error) bool {
	return slices.Contains([]backend.ErrorKind{backend.Invalid, backend.Conflict, backend.NotFound}, backend.KindOf(err))
}

func requested(claim *corev1.PersistentVolumeClaim) resource.Quantity {
	return claim.Spec.Resources.Requests[corev1.ResourceStorage]
}

// ResizeStatus is how far an expansion of a claim is; empty where none is under way.
func ResizeStatus(claim *corev1.PersistentVolumeClaim) corev1.ClaimResourceStatus {
	return claim.Status.AllocatedResourceStatuses[corev1.ResourceStorage]
}
