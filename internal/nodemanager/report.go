package nodemanager

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ensureCondition writes the pod's condition and tells of it, if it says
// something new.
func (r *Reconciler) ensureCondition(ctx context.Context, pod *corev1.Pod, wanted *DesiredPod, condition corev1.PodCondition, states []progress) error {
	changed := pod.DeepCopy()
	if !setPodCondition(changed, condition, r.Clock.Now()) || wanted.HasTold(pod, condition) {
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
	if event, ok := eventOf(condition, states); ok && event != wanted.event {
		wanted.event = event
		r.tell(pod, event)
	}
	return nil
}

func (r *Reconciler) tell(pod *corev1.Pod, event podEvent) {
	r.Events.Eventf(pod, nil, event.kind, event.reason, event.action, "%s", event.note)
}

// tellLongWait records once what keeps a pod waiting for long.
func (r *Reconciler) tellLongWait(pod *corev1.Pod, wanted *DesiredPod, condition corev1.PodCondition) {
	if wanted.wait.isLong(condition, r.Clock.Now()) && r.longWaits.IsNew(pod.UID, condition.Message) {
		r.tell(pod, podEvent{corev1.EventTypeWarning, failedMount, "Mounting", condition.Message})
	}
}
