package growth

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stowage-dev/stowage/internal/message"
)

// Reasons of the events of a growth, as the kubelet has them.
const (
	fileSystemGrown = "FileSystemResizeSuccessful"
	growthFailed    = "VolumeResizeFailed"
)

// growthConditions tell of an expansion, and go with it.
var growthConditions = []corev1.PersistentVolumeClaimConditionType{
	corev1.PersistentVolumeClaimResizing, corev1.PersistentVolumeClaimFileSystemResizePending,
	corev1.PersistentVolumeClaimControllerResizeError, corev1.PersistentVolumeClaimNodeResizeError,
}

// isNodesTurn says whether a claim waits for its node to grow the file system.
func isNodesTurn(claim *corev1.PersistentVolumeClaim) bool {
	status := claim.Status.AllocatedResourceStatuses[corev1.ResourceStorage]
	return status == corev1.PersistentVolumeClaimNodeResizePending || status == corev1.PersistentVolumeClaimNodeResizeInProgress
}

// mayYetGrow says whether a claim asks for more than it has: its turn may come.
func mayYetGrow(claim *corev1.PersistentVolumeClaim) bool {
	has, asked := claim.Status.Capacity[corev1.ResourceStorage], claim.Spec.Resources.Requests[corev1.ResourceStorage]
	return has.Cmp(asked) < 0 || isNodesTurn(claim)
}

func hasFailedOnNode(claim *corev1.PersistentVolumeClaim) bool {
	return slices.ContainsFunc(claim.Status.Conditions, func(condition corev1.PersistentVolumeClaimCondition) bool {
		return condition.Type == corev1.PersistentVolumeClaimNodeResizeError && condition.Status == corev1.ConditionTrue
	})
}

func isSameStatus(a, b *corev1.PersistentVolumeClaim) bool {
	return equality.Semantic.DeepEqual(a.Status, b.Status)
}

// setGrowing says, in memory, that the node is at it.
func setGrowing(claim *corev1.PersistentVolumeClaim) {
	claim.Status.AllocatedResourceStatuses[corev1.ResourceStorage] = corev1.PersistentVolumeClaimNodeResizeInProgress
}

// setGrown says, in memory, what the claim has, and that nothing is left to do.
func setGrown(claim *corev1.PersistentVolumeClaim, has resource.Quantity) {
	claim.Status.Capacity[corev1.ResourceStorage] = has
	delete(claim.Status.AllocatedResourceStatuses, corev1.ResourceStorage)
	claim.Status.Conditions = slices.DeleteFunc(claim.Status.Conditions, func(condition corev1.PersistentVolumeClaimCondition) bool {
		return slices.Contains(growthConditions, condition.Type)
	})
}

// setGrowthFailed says, in memory, what went wrong, and whether that is the end of it.
func setGrowthFailed(claim *corev1.PersistentVolumeClaim, problem error, hopeless bool, now time.Time) {
	if hopeless {
		claim.Status.AllocatedResourceStatuses[corev1.ResourceStorage] = corev1.PersistentVolumeClaimNodeResizeInfeasible
	}
	failed := corev1.PersistentVolumeClaimCondition{
		Type: corev1.PersistentVolumeClaimNodeResizeError, Status: corev1.ConditionTrue, Reason: growthFailed,
		Message: message.Cut(problem.Error(), message.MaxCondition), LastTransitionTime: metav1.NewTime(now),
	}
	for i, old := range claim.Status.Conditions {
		if old.Type == failed.Type {
			failed.LastTransitionTime = old.LastTransitionTime
			claim.Status.Conditions[i] = failed
			return
		}
	}
	claim.Status.Conditions = append(claim.Status.Conditions, failed)
}
