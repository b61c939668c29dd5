// Package uses answers which pods use a claim, or may still use its storage, and has the
// finalizers that protect what is used. Pods count as users until they can't have a volume
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

// RefersTo tells whether one of a pod's volumes is this claim. A claim that only
// has the name of a generic ephemeral volume is not.
func RefersTo(pod *corev1.Pod, claim *corev1.PersistentVolumeClaim) bool {
	return slices.ContainsFunc(pod.Spec.Volumes, func(source corev1.Volume) bool {
		return volume.ClaimName(pod, &source) == claim.Name && (source.Ephemeral == nil || ephemeral.VolumeIsForPod(pod, claim) == nil)
	})
}

// IsFinished tells whether a pod's containers ended for good.
func IsFinished(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// HasEnded tells of finished pods, and of deleted ones none of whose containers
// runs any more.
func HasEnded(pod *corev1.Pod) bool {
	return IsFinished(pod) || !pod.DeletionTimestamp.IsZero() &&
		!slices.ContainsFunc(pod.Status.ContainerStatuses, func(status corev1.ContainerStatus) bool { return status.State.Running != nil })
}

// isShutDown tells whether a deleted pod's node is done with it, or somebody gave
// the node up: only the pod's finalizers keep the object.
func isShutDown(pod *corev1.Pod) bool {
	return !pod.DeletionTimestamp.IsZero() && ptr.Deref(pod.DeletionGracePeriodSeconds, 1) == 0
}

// Of tells of pods whether they keep a claim from being deleted: those with a
// node, because nothing starts a pod whose claim is being deleted, and until their
// object is gone, because a pod that ended may still have its volumes mounted. A
// pod whose own claim it is must not wait for the claim that waits for the pod.
func Of(claim *corev1.PersistentVolumeClaim) func(corev1.Pod) bool {
	return func(pod corev1.Pod) bool {
		waitedFor := metav1.IsControlledBy(claim, &pod) && isShutDown(&pod)
		return pod.Spec.NodeName != "" && !waitedFor && RefersTo(&pod, claim)
	}
}

// OnlyNew lets pass pods that come, go, or are placed, and their end: what else
// their nodes report of them matters to no claim.
var OnlyNew = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	before, after := e.ObjectOld.(*corev1.Pod), e.ObjectNew.(*corev1.Pod)
	return before.UID != after.UID || before.Spec.NodeName != after.Spec.NodeName ||
		before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero() ||
		IsFinished(before) != IsFinished(after) || HasEnded(before) != HasEnded(after) || isShutDown(before) != isShutDown(after)
}}

// UsedByPod tells whether a pod that isn't done may have mounted the storage of a
// claim that is gone. One that is younger than the next claim of that name has that
// one's.
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

// ErrKept says of an orphan that a pod may use it.
var ErrKept = errors.New("a pod may use it")

// VolumeProtection is Kubernetes' own, which its admission plug-in adds: a
// volume isn't deleted while a claim is bound to it.
const VolumeProtection = "kubernetes.io/pv-protection"

// ClaimProtection is Kubernetes' own, which its admission plug-in adds: a
// claim isn't deleted while a pod uses it.
const ClaimProtection = "kubernetes.io/pvc-protection"

// AttributesClassProtection is Kubernetes' own, which its admission plug-in adds: a
// VolumeAttributesClass isn't deleted while a claim or a volume names it.
const AttributesClassProtection = "kubernetes.io/vac-protection"
