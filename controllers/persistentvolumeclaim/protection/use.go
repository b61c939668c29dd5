package protection

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/controllers/persistentvolumeclaim/step"
	"github.com/stowage-dev/stowage/internal/bindable"
	"github.com/stowage-dev/stowage/internal/event"
	"github.com/stowage-dev/stowage/internal/index"
	"github.com/stowage-dev/stowage/internal/uses"
	"github.com/stowage-dev/stowage/internal/wake"
)

// SetUnused sets, in memory, the condition since when no pod refers to a bound claim, and
// reports whether it changed. The cache is enough: a pod that it does not show yet wakes the
// claim, and a cleanup of unused claims only waits longer.
func (r *Protector) SetUnused(ctx context.Context, claim *corev1.PersistentVolumeClaim) (changed bool, err error) {
	pods, err := r.CachedPods(ctx, claim)
	if err != nil {
		return false, err
	}
	condition := corev1.PersistentVolumeClaimCondition{
		Type: corev1.PersistentVolumeClaimUnused, Status: corev1.ConditionTrue,
		Reason: bindable.ReasonNoPodsUsingPVC, Message: "no pod that is yet to end refers to this claim",
	}
	if slices.ContainsFunc(pods, func(pod corev1.Pod) bool { return !uses.HasEnded(&pod) && uses.RefersTo(&pod, claim) }) {
		condition.Status, condition.Reason = corev1.ConditionFalse, bindable.ReasonPodUsingPVC
		condition.Message = "a pod refers to this claim"
	}
	return bindable.SetCondition(claim, condition), nil
}

// maxPodsNamed is how many pods a message names.
const maxPodsNamed = 3

// waitForPods names the pods that keep a deleted claim, in an event of the claim.
func waitForPods(claim *corev1.PersistentVolumeClaim, pods []corev1.Pod) *step.Wait {
	var names []string
	for i := range pods {
		if uses.Of(claim)(pods[i]) {
			names = append(names, fmt.Sprintf("%s on node %s", pods[i].Name, pods[i].Spec.NodeName))
		}
	}
	slices.Sort(names)
	if more := len(names) - maxPodsNamed; more > 0 {
		names = append(names[:maxPodsNamed], fmt.Sprintf("%d more", more))
	}
	return &step.Wait{Event: event.ClaimInUse, Message: "the claim is being deleted, and stays while a pod uses it: delete pod " + strings.Join(names, ", ")}
}

// CachedPods returns the pods that name a claim. They are shared with the cache and must not
// be changed.
func (r *Protector) CachedPods(ctx context.Context, claim *corev1.PersistentVolumeClaim) ([]corev1.Pod, error) {
	pods := &corev1.PodList{}
	err := r.client.List(ctx, pods, client.InNamespace(claim.Namespace), client.MatchingFields{index.PodsByClaim: claim.Name},
		wake.Unhurried, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("listing the pods of claim %s/%s: %w", claim.Namespace, claim.Name, err)
	}
	return pods.Items, nil
}
