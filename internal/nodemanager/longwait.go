package nodemanager

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
)

// longWait is how long a pod waits for the same until its user is told by an event:
// what conditions say isn't shown by kubectl describe.
const longWait = time.Minute

// longWaits knows what a pod waits for, and what was told of that.
type longWaits struct {
	message string
	since   time.Time
	told    map[string]struct{}
}

// isNew says whether a pod has been waiting for the same for long, and nobody was told.
func (w *longWaits) isNew(condition corev1.PodCondition, now time.Time) bool {
	if condition.Reason != stowagev1alpha1.ReasonPending {
		w.message = ""
		return false
	}
	if condition.Message != w.message {
		w.message, w.since = condition.Message, now
	}
	if _, told := w.told[w.message]; told || now.Sub(w.since) < longWait {
		return false
	}
	if w.told == nil {
		w.told = map[string]struct{}{}
	}
	w.told[w.message] = struct{}{}
	return true
}

// tellLongWait tells, once, what keeps a pod waiting for long.
func (r *Reconciler) tellLongWait(pod *corev1.Pod, wanted *DesiredPod, condition corev1.PodCondition) {
	if wanted.waits.isNew(condition, r.Clock.Now()) {
		r.tell(pod, podEvent{corev1.EventTypeWarning, failedMount, "Mounting", condition.Message})
	}
}
