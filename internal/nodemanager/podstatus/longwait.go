package podstatus

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
)

// LongWaitTime is how long a pod waits for the same until an event is recorded: kubectl
// describe doesn't show the messages of conditions.
const LongWaitTime = time.Minute

// LongWait is what a pod waits for, and since when.
type LongWait struct {
	message string
	since   time.Time
}

// IsLong reports whether a pod has been waiting for the same for long.
func (w *LongWait) IsLong(condition corev1.PodCondition, now time.Time) bool {
	if condition.Reason != stowagev1alpha1.ReasonPending {
		w.message = ""
		return false
	}
	if condition.Message != w.message {
		w.message, w.since = condition.Message, now
	}
	return now.Sub(w.since) >= LongWaitTime
}
