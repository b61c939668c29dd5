package nodemanager

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/internal/nodemanager/podstatus"
)

// ensureCondition writes the pod's condition and tells of it, if it says
// something new.
func (r *Reconciler) ensureCondition(ctx context.Context, pod *corev1.Pod, wanted *DesiredPod, condition corev1.PodCondition, states []podstatus.Progress) error {
	changed := pod.DeepCopy()
	if !podstatus.SetPodCondition(changed, condition, r.Clock.Now()) || wanted.HasTold(pod, condition) {
		return nil
	}
	// Strategic: a merge patch would replace the conditions that others write.
	err := r.Client.Status().Patch(ctx, changed, client.StrategicMergeFrom(pod))
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("writing the condition of pod %s: %w", client.ObjectKeyFromObject(pod), err)
	}
	wanted.Told, wanted.ToldAt = condition, pod.ResourceVersion
	if event, ok := podstatus.EventOf(condition, states); ok && event != wanted.event {
		wanted.event = event
		r.tell(pod, event)
	}
	return nil
}

func (r *Reconciler) tell(pod *corev1.Pod, event podstatus.PodEvent) {
	r.Events.Eventf(pod, nil, event.Kind, event.Reason, event.Action, "%s", event.Note)
}

// tellLongWait records once what keeps a pod waiting for long.
func (r *Reconciler) tellLongWait(pod *corev1.Pod, wanted *DesiredPod, condition corev1.PodCondition) {
	if wanted.wait.IsLong(condition, r.Clock.Now()) && r.longWaits.IsNew(pod.UID, condition.Message) {
		r.tell(pod, podstatus.PodEvent{Kind: corev1.EventTypeWarning, Reason: podstatus.FailedMount, Action: "Mounting", Note: condition.Message})
	}
}
