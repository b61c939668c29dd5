// Package podclaims says which claims a pod's volumes use, which of the node's pods use a
// claim, and whether a pod needs its volumes still. It reads the cache and decides nothing.
package podclaims

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/volume"
)

// ClaimNameOf is the claim behind a pod's volume: the one that it names, or the one
// that the manager makes for a generic ephemeral volume.
func ClaimNameOf(pod *corev1.Pod, source corev1.Volume) string { return volume.ClaimName(pod, &source) }

// ClaimsOf is the claims behind a pod's volumes.
func ClaimsOf(pod *corev1.Pod) []client.ObjectKey {
	var claims []client.ObjectKey
	for _, volume := range pod.Spec.Volumes {
		if name := ClaimNameOf(pod, volume); name != "" {
			claims = append(claims, client.ObjectKey{Namespace: pod.Namespace, Name: name})
		}
	}
	return claims
}

// PodsUsing is the node's pods that use a claim, as the cache has them: nobody may change
// them.
func PodsUsing(ctx context.Context, cached client.Reader, claim client.ObjectKey) ([]corev1.Pod, error) {
	pods := &corev1.PodList{}
	if err := cached.List(ctx, pods, client.InNamespace(claim.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the pods that use claim %s: %w", claim, err)
	}
	return slices.DeleteFunc(pods.Items, func(pod corev1.Pod) bool { return !slices.Contains(ClaimsOf(&pod), claim) }), nil
}

// ClaimOf is the claim that a NodeVolume is for.
func ClaimOf(volume *stowagev1alpha1.NodeVolume) types.NamespacedName {
	return types.NamespacedName{Namespace: volume.Spec.ClaimRef.Namespace, Name: volume.Spec.ClaimRef.Name}
}

// HasVolumes reports whether a pod's condition says that all of its volumes are mounted.
func HasVolumes(pod *corev1.Pod) bool {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == stowagev1alpha1.VolumesReadyCondition {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

// NeedsVolumes says whether a pod's volumes must be there: until it is finished
// or being deleted, and in any case while one of its containers runs.
// A pod without container statuses has nothing that runs.
func NeedsVolumes(pod *corev1.Pod) bool {
	if hasRunningContainer(pod) {
		return true
	}
	finished := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
	return !finished && pod.DeletionTimestamp == nil
}

func hasRunningContainer(pod *corev1.Pod) bool {
	lists := [][]corev1.ContainerStatus{
		pod.Status.InitContainerStatuses,
		pod.Status.ContainerStatuses,
		pod.Status.EphemeralContainerStatuses,
	}
	for _, statuses := range lists {
		for _, status := range statuses {
			if status.State.Running != nil {
				return true
			}
		}
	}
	return false
}
