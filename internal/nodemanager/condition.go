package nodemanager

import (
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/message"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

// Reasons of events. Those that the kubelet uses for the same mean the same.
const (
	failedMount   = "FailedMount"
	failedUnmount = "FailedUnmount"
	mounted       = "SuccessfulMountVolume"
	// sizeLimitExceeded is the reason of the condition, too.
	sizeLimitExceeded = "SizeLimitExceeded"
)

// progress is how far one volume is.
type progress struct {
	// name that the pod has for the volume.
	name string
	// done: it is mounted.
	done bool
	// err says why not, or what it waits for; nil while work goes on as it should.
	err error
	// again is when to look again; 0: something will happen that tells.
	again time.Duration
}

// String says what is wrong, or waited for.
func (p progress) String() string { return fmt.Sprintf("volume %s: %v", p.name, p.err) }

// conditionOf sums up how far a pod's volumes are. ok is false while work goes
// on of which there is nothing to tell: what was said before stays.
func conditionOf(volumes []progress) (condition corev1.PodCondition, ok bool) {
	condition = corev1.PodCondition{
		Type:    stowagev1alpha1.VolumesReadyCondition,
		Status:  corev1.ConditionTrue,
		Reason:  stowagev1alpha1.ReasonReady,
		Message: fmt.Sprintf("all volumes are mounted (%d)", len(volumes)),
	}
	var messages []string
	working := false
	for _, volume := range volumes {
		switch {
		case volume.err != nil:
			messages = append(messages, volume.String())
			condition.Reason = worse(condition.Reason, reasonOf(volume.err))
		case !volume.done:
			working = true
		}
	}
	if len(messages) > 0 {
		condition.Status = corev1.ConditionFalse
		condition.Message = message.Cut(strings.Join(messages, "; "), message.MaxCondition)
		return condition, true
	}
	return condition, !working
}

// reasonOf is the reason for which a volume isn't mounted.
func reasonOf(err error) string {
	switch {
	case isWait(err):
		return stowagev1alpha1.ReasonPending
	case errors.Is(err, volumes.ErrNotSupported):
		return stowagev1alpha1.ReasonNotSupported
	case errors.Is(err, volumes.ErrOverLimit):
		return sizeLimitExceeded
	default:
		return failedMount
	}
}

// worse is the reason that a user wants to see first.
func worse(a, b string) string {
	severity := map[string]int{
		stowagev1alpha1.ReasonReady:        0,
		stowagev1alpha1.ReasonPending:      1,
		sizeLimitExceeded:                  2,
		stowagev1alpha1.ReasonNotSupported: 3,
		failedMount:                        4,
	}
	if severity[a] > severity[b] {
		return a
	}
	return b
}

// podEvent is what users are told about a pod.
type podEvent struct {
	kind, reason, action, note string
}

// eventOf is the event that tells of a new condition; none for waiting, which
// the condition itself tells.
func eventOf(condition corev1.PodCondition, volumes []progress) (podEvent, bool) {
	switch condition.Reason {
	case stowagev1alpha1.ReasonReady:
		return podEvent{corev1.EventTypeNormal, mounted, "Mounting", condition.Message}, true
	case stowagev1alpha1.ReasonPending:
		return podEvent{}, false
	case sizeLimitExceeded:
		return podEvent{corev1.EventTypeWarning, sizeLimitExceeded, "Measuring", wrongWith(volumes)}, true
	default:
		return podEvent{corev1.EventTypeWarning, failedMount, "Mounting", wrongWith(volumes)}, true
	}
}

// wrongWith says what is wrong with the volumes that don't just wait.
func wrongWith(volumes []progress) string {
	var messages []string
	for _, volume := range volumes {
		if volume.err != nil && !isWait(volume.err) {
			messages = append(messages, volume.String())
		}
	}
	return strings.Join(messages, "; ")
}

// unmountFailed tells that a pod's volumes can't be taken away.
func unmountFailed(err error) podEvent {
	return podEvent{corev1.EventTypeWarning, failedUnmount, "Unmounting", err.Error()}
}

// setPodCondition sets the condition in the pod, and says whether that changed it.
func setPodCondition(pod *corev1.Pod, condition corev1.PodCondition, now time.Time) bool {
	condition.LastTransitionTime = metav1.NewTime(now)
	for i, old := range pod.Status.Conditions {
		if old.Type != condition.Type {
			continue
		}
		if old.Status == condition.Status {
			condition.LastTransitionTime = old.LastTransitionTime
		}
		if old.Status == condition.Status && old.Reason == condition.Reason && old.Message == condition.Message {
			return false
		}
		pod.Status.Conditions[i] = condition
		return true
	}
	pod.Status.Conditions = append(pod.Status.Conditions, condition)
	return true
}

// orGone is how far a volume is whose disk was found to be gone, which the user wants to
// know first, while it is waited for.
func orGone(gone error, at progress) progress {
	switch {
	case gone == nil:
		return at
	case at.err == nil || isWait(at.err) || errors.Is(at.err, volumes.ErrGone):
		at.err = gone
	default:
		at.err = fmt.Errorf("%w; %w", gone, at.err)
	}
	return at
}
