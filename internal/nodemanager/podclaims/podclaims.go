// Package podclaims finds the node's pods, the claims of their volumes, and whether a pod still
// needs its volumes. It reads the cache, and before a teardown the API server. It writes nothing.
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

// ClaimNameOf is the claim of a pod's volume: the one that it names, or the one that the manager
// creates for a generic ephemeral volume.
func ClaimNameOf(pod *corev1.Pod, source corev1.Volume) string { return volume.ClaimName(pod, &source) }

// ClaimsOf returns the claims of a pod's volumes.
func ClaimsOf(pod *corev1.Pod) []client.ObjectKey {
	var claims []client.ObjectKey
	for _, volume := range pod.Spec.Volumes {
		if name := ClaimNameOf(pod, volume); name != "" {
			claims = append(claims, client.ObjectKey{Namespace: pod.Namespace, Name: name})
		}
	}
	return claims
}

// PodsUsing returns the node's pods that use a claim, shared with the cache: read-only.
func PodsUsing(ctx context.Context, cached client.Reader, claim client.ObjectKey) ([]corev1.Pod, error) {
	pods := &corev1.PodList{}
	err := cached.List(ctx, pods, client.InNamespace(claim.Namespace), client.MatchingFields{ClaimIndex: claim.Name}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("listing the pods that use claim %s: %w", claim, err)
	}
	return pods.Items, nil
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

// NeedsVolumes reports whether a pod's volumes must stay mounted. That is until the pod is finished
// or being deleted, and in any case while one of its containers runs. A pod without container
// statuses has no running container.
func NeedsVolumes(pod *corev1.Pod) bool {
	if hasRunningContainer(pod) {
		return true
	}
	finished := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
	return !finished && pod.DeletionTimestamp == nil
}

func hasRunningContainer(pod *corev1.Pod) bool {
	status := pod.Status
	all := slices.Concat(status.InitContainerStatuses, status.ContainerStatuses, status.EphemeralContainerStatuses)
	return slices.ContainsFunc(all, func(container corev1.ContainerStatus) bool { return container.State.Running != nil })
}
