package controllers

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/storage/ephemeral"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/stowage-dev/stowage/internal/volume"
)

// setUnused sets, in memory, the condition that tells since when no pod refers to
// a bound claim, and tells whether it changed. The cache is enough: a pod that it
// has not seen yet wakes the claim, and whoever removes what is long unused only
// waits longer.
func (r *PersistentVolumeClaimReconciler) setUnused(ctx context.Context, claim *corev1.PersistentVolumeClaim) (changed bool, err error) {
	pods, err := r.cachedPods(ctx, claim)
	if err != nil {
		return false, err
	}
	condition := corev1.PersistentVolumeClaimCondition{
		Type: corev1.PersistentVolumeClaimUnused, Status: corev1.ConditionTrue,
		Reason: "NoPodsUsingPVC", Message: "no pod that is yet to end refers to this claim",
	}
	if slices.ContainsFunc(pods, func(pod corev1.Pod) bool { return !hasEnded(&pod) && refersTo(&pod, claim) }) {
		condition.Status, condition.Reason = corev1.ConditionFalse, "PodUsingPVC"
		condition.Message = "a pod refers to this claim"
	}
	return setClaimCondition(claim, condition), nil
}

// cachedPods are the pods that name a claim: the cache's own, which are not to be
// changed.
func (r *PersistentVolumeClaimReconciler) cachedPods(ctx context.Context, claim *corev1.PersistentVolumeClaim) ([]corev1.Pod, error) {
	pods := &corev1.PodList{}
	err := r.client.List(ctx, pods, client.InNamespace(claim.Namespace), client.MatchingFields{podsByClaim: claim.Name},
		unhurried, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("listing the pods of claim %s/%s: %w", claim.Namespace, claim.Name, err)
	}
	return pods.Items, nil
}

// refersTo tells whether one of a pod's volumes is this claim. A claim that only
// has the name of a generic ephemeral volume is not.
func refersTo(pod *corev1.Pod, claim *corev1.PersistentVolumeClaim) bool {
	return slices.ContainsFunc(pod.Spec.Volumes, func(source corev1.Volume) bool {
		return volume.ClaimName(pod, &source) == claim.Name && (source.Ephemeral == nil || ephemeral.VolumeIsForPod(pod, claim) == nil)
	})
}

// isFinished tells whether a pod's containers ended for good.
func isFinished(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// hasEnded tells of finished pods, and of deleted ones none of whose containers
// runs any more.
func hasEnded(pod *corev1.Pod) bool {
	return isFinished(pod) || !pod.DeletionTimestamp.IsZero() &&
		!slices.ContainsFunc(pod.Status.ContainerStatuses, func(status corev1.ContainerStatus) bool { return status.State.Running != nil })
}

// isShutDown tells whether a deleted pod's node is done with it, or somebody gave
// the node up: only the pod's finalizers keep the object.
func isShutDown(pod *corev1.Pod) bool {
	return !pod.DeletionTimestamp.IsZero() && ptr.Deref(pod.DeletionGracePeriodSeconds, 1) == 0
}

// uses tells of pods whether they keep a claim from being deleted: those with a
// node, because nothing starts a pod whose claim is being deleted, and until their
// object is gone, because a pod that ended may still have its volumes mounted. A
// pod whose own claim it is must not wait for the claim that waits for the pod.
func uses(claim *corev1.PersistentVolumeClaim) func(corev1.Pod) bool {
	return func(pod corev1.Pod) bool {
		waitedFor := metav1.IsControlledBy(claim, &pod) && isShutDown(&pod)
		return pod.Spec.NodeName != "" && !waitedFor && refersTo(&pod, claim)
	}
}

// newUse lets pass pods that come, go, or are placed, and their end: what else
// their nodes report of them matters to no claim.
var newUse = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	before, after := e.ObjectOld.(*corev1.Pod), e.ObjectNew.(*corev1.Pod)
	return before.UID != after.UID || before.Spec.NodeName != after.Spec.NodeName ||
		before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero() ||
		isFinished(before) != isFinished(after) || hasEnded(before) != hasEnded(after) || isShutDown(before) != isShutDown(after)
}}
