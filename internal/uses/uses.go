// Package uses answers which pods use a claim, or may still use its storage, and has the
// finalizers that protect what is used. Pods count as users until they cannot have a volume
// mounted any more.
package uses

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/storage/ephemeral"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/index"
	"github.com/stowage-dev/stowage/internal/volume"
)

// RefersTo reports whether one of a pod's volumes is this claim. A claim that only has the
// name of a generic ephemeral volume does not count.
func RefersTo(pod *corev1.Pod, claim *corev1.PersistentVolumeClaim) bool {
	return slices.ContainsFunc(pod.Spec.Volumes, func(source corev1.Volume) bool {
		return volume.ClaimName(pod, &source) == claim.Name && (source.Ephemeral == nil || ephemeral.VolumeIsForPod(pod, claim) == nil)
	})
}

// IsFinished reports whether a pod's containers ended for good, by its phase.
func IsFinished(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// HasEnded reports whether a pod is finished, or is deleted and has no running container.
func HasEnded(pod *corev1.Pod) bool {
	return IsFinished(pod) || !pod.DeletionTimestamp.IsZero() &&
		!slices.ContainsFunc(pod.Status.ContainerStatuses, func(status corev1.ContainerStatus) bool { return status.State.Running != nil })
}

// isShutDown reports whether a deleted pod's grace period is over: its node is done with it,
// or the deletion was forced. Only finalizers keep such an object.
func isShutDown(pod *corev1.Pod) bool {
	return !pod.DeletionTimestamp.IsZero() && ptr.Deref(pod.DeletionGracePeriodSeconds, 1) == 0
}

// Of returns a function that reports whether a pod protects a claim from deletion. Only pods
// with a node do, because no pod starts while its claim is being deleted. They do until their
// object is gone, because a pod that ended may still have its volumes mounted. A pod that owns
// the claim does not, once it is shut down: each would wait for the other.
func Of(claim *corev1.PersistentVolumeClaim) func(corev1.Pod) bool {
	return func(pod corev1.Pod) bool {
		waitedFor := metav1.IsControlledBy(claim, &pod) && isShutDown(&pod)
		return pod.Spec.NodeName != "" && !waitedFor && RefersTo(&pod, claim)
	}
}

// OnlyNew passes pods that are created, deleted, scheduled or finished. No other change in
// their status matters to a claim.
var OnlyNew = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	before, after := e.ObjectOld.(*corev1.Pod), e.ObjectNew.(*corev1.Pod)
	return before.UID != after.UID || before.Spec.NodeName != after.Spec.NodeName ||
		before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero() ||
		IsFinished(before) != IsFinished(after) || HasEnded(before) != HasEnded(after) || isShutDown(before) != isShutDown(after)
}}

// UsedByPod reports whether a pod that is not done may have mounted the storage of a deleted
// claim. A pod that is younger than the next claim of that name uses the next claim.
func UsedByPod(ctx context.Context, live client.Reader, gone stowagev1alpha1.ClaimReference, isDone func(*corev1.Pod) bool) (bool, error) {
	key := client.ObjectKey{Namespace: gone.Namespace, Name: gone.Name}
	next, pods := &corev1.PersistentVolumeClaim{}, &corev1.PodList{}
	found := live.Get(ctx, key, next)
	if client.IgnoreNotFound(found) != nil {
		return false, fmt.Errorf("reading claim %s: %w", key, found)
	}
	if err := live.List(ctx, pods, client.InNamespace(gone.Namespace)); err != nil {
		return false, fmt.Errorf("listing the pods of namespace %s: %w", gone.Namespace, err)
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		older := apierrors.IsNotFound(found) || !next.CreationTimestamp.Before(&pod.CreationTimestamp)
		if older && !isDone(pod) && slices.Contains(index.ClaimsOf(pod), gone.Name) {
			return true, nil
		}
	}
	return false, nil
}

// ErrKept is the reason why an orphan stays: a pod may use it.
var ErrKept = errors.New("a pod may use it")

// VolumeProtection is a finalizer of Kubernetes, which its admission plug-in adds: a volume is
// not deleted while a claim is bound to it.
const VolumeProtection = "kubernetes.io/pv-protection"

// ClaimProtection is a finalizer of Kubernetes, which its admission plug-in adds: a claim is
// not deleted while a pod uses it.
const ClaimProtection = "kubernetes.io/pvc-protection"

// AttributesClassProtection is a finalizer of Kubernetes, which its admission plug-in adds: a
// VolumeAttributesClass is not deleted while a claim or a volume names it.
const AttributesClassProtection = "kubernetes.io/vac-protection"
