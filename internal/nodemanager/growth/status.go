package growth

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stowage-dev/stowage/internal/event"
	"github.com/stowage-dev/stowage/internal/message"
)

// reasonFailed is the condition's reason, which is that of the event.
//
// reasonFailed: the file system can't be grown on its node.
const reasonFailed = event.VolumeResizeFailed

// growthConditions are the conditions of an expansion, which are removed with it.
var growthConditions = []corev1.PersistentVolumeClaimConditionType{
	corev1.PersistentVolumeClaimResizing, corev1.PersistentVolumeClaimFileSystemResizePending,
	corev1.PersistentVolumeClaimControllerResizeError, corev1.PersistentVolumeClaimNodeResizeError,
}

// isPendingOnNode reports whether a claim waits for its node to grow the file system.
func isPendingOnNode(claim *corev1.PersistentVolumeClaim) bool {
	status := claim.Status.AllocatedResourceStatuses[corev1.ResourceStorage]
	return status == corev1.PersistentVolumeClaimNodeResizePending || status == corev1.PersistentVolumeClaimNodeResizeInProgress
}

// mayGrow reports whether a claim requests more than it has, or waits for its node.
func mayGrow(claim *corev1.PersistentVolumeClaim) bool {
	has, requested := claim.Status.Capacity[corev1.ResourceStorage], claim.Spec.Resources.Requests[corev1.ResourceStorage]
	return has.Cmp(requested) < 0 || isPendingOnNode(claim)
}

func hasFailedOnNode(claim *corev1.PersistentVolumeClaim) bool {
	return slices.ContainsFunc(claim.Status.Conditions, func(condition corev1.PersistentVolumeClaimCondition) bool {
		return condition.Type == corev1.PersistentVolumeClaimNodeResizeError && condition.Status == corev1.ConditionTrue
	})
}

func isSameStatus(a, b *corev1.PersistentVolumeClaim) bool {
	return equality.Semantic.DeepEqual(a.Status, b.Status)
}

// setGrowing sets, in memory, that the node is growing the file system.
func setGrowing(claim *corev1.PersistentVolumeClaim) {
	claim.Status.AllocatedResourceStatuses[corev1.ResourceStorage] = corev1.PersistentVolumeClaimNodeResizeInProgress
}

// setGrown sets, in memory, the claim's capacity, and ends the expansion.
func setGrown(claim *corev1.PersistentVolumeClaim, has resource.Quantity) {
	claim.Status.Capacity[corev1.ResourceStorage] = has
	delete(claim.Status.AllocatedResourceStatuses, corev1.ResourceStorage)
	claim.Status.Conditions = slices.DeleteFunc(claim.Status.Conditions, func(condition corev1.PersistentVolumeClaimCondition) bool {
		return slices.Contains(growthConditions, condition.Type)
	})
}

// setGrowthFailed sets, in memory, the error of an expansion, and whether it is given up.
func setGrowthFailed(claim *corev1.PersistentVolumeClaim, problem error, infeasible bool, now time.Time) {
	if infeasible {
		claim.Status.AllocatedResourceStatuses[corev1.ResourceStorage] = corev1.PersistentVolumeClaimNodeResizeInfeasible
	}
	failed := corev1.PersistentVolumeClaimCondition{
		Type: corev1.PersistentVolumeClaimNodeResizeError, Status: corev1.ConditionTrue, Reason: reasonFailed,
		Message: message.Cut(problem.Error(), message.MaxCondition), LastProbeTime: metav1.NewTime(now), LastTransitionTime: metav1.NewTime(now),
	}
	for i, old := range claim.Status.Conditions {
		if old.Type == failed.Type {
			failed.LastTransitionTime = old.LastTransitionTime
			if old.Message == failed.Message {
				failed.LastProbeTime = old.LastProbeTime // else each retry would be a write, and an event
			}
			claim.Status.Conditions[i] = failed
			return
		}
	}
	claim.Status.Conditions = append(claim.Status.Conditions, failed)
}
