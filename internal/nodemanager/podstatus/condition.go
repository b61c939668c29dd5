// Package podstatus computes a pod's condition and events from the progress of its volumes: what
// they wait for, what failed, and when to reconcile again. A problem that stays is recorded once.
// The package only decides; the reconciler writes.
package podstatus

import (
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/event"
	"github.com/stowage-dev/stowage/internal/message"
	"github.com/stowage-dev/stowage/internal/nodemanager/resolve"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

// Reasons of the condition, beside those of the API.
const (
	// ReasonFailedMount: a volume can't be mounted, or its content can't be refreshed.
	ReasonFailedMount = event.FailedMount
	// ReasonFailedUnmount: the pod is being deleted, and a volume can't be unmounted.
	ReasonFailedUnmount = event.FailedUnmount
	// ReasonSizeLimitExceeded: an emptyDir holds more than its sizeLimit.
	ReasonSizeLimitExceeded = event.SizeLimitExceeded
)

// Progress is how far one volume is.
type Progress struct {
	// Name that the pod has for the volume.
	Name string
	// Done: it is mounted.
	Done bool
	// Err is why not, or what it waits for; nil while work goes on as it should.
	Err error
	// Again is when to reconcile again; 0: an event will follow.
	Again time.Duration
}

func (p Progress) String() string { return fmt.Sprintf("volume %s: %v", p.Name, p.Err) }

// ConditionOf sums up the progress of a pod's volumes. ok is false while work goes on without an
// error: the last condition stays.
func ConditionOf(volumes []Progress) (condition corev1.PodCondition, ok bool) {
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
		case volume.Err != nil:
			messages = append(messages, volume.String())
			condition.Reason = worse(condition.Reason, ReasonOf(volume.Err))
		case !volume.Done:
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

// ReasonOf is the reason why a volume isn't mounted.
func ReasonOf(err error) (reason string) {
	switch {
	case resolve.IsWait(err):
		return stowagev1alpha1.ReasonPending
	case errors.Is(err, volumes.ErrNotSupported):
		return stowagev1alpha1.ReasonNotSupported
	case errors.Is(err, volumes.ErrOverLimit):
		return ReasonSizeLimitExceeded
	default:
		return ReasonFailedMount
	}
}

// worse returns the more severe reason.
func worse(a, b string) string {
	severity := map[string]int{
		stowagev1alpha1.ReasonReady:        0,
		stowagev1alpha1.ReasonPending:      1,
		ReasonSizeLimitExceeded:            2,
		stowagev1alpha1.ReasonNotSupported: 3,
		ReasonFailedMount:                  4,
	}
	if severity[a] > severity[b] {
		return a
	}
	return b
}

// PodEvent is an event of a pod.
type PodEvent struct {
	Kind, Reason, Action, Note string
}

// EventOf returns the event for a new condition. Only the condition reports Pending, and Ready if the pod's last
// event wasn't a warning: as with a kubelet, a pod without problems has no event of its volumes.
func EventOf(condition corev1.PodCondition, volumes []Progress, last PodEvent) (PodEvent, bool) {
	switch condition.Reason {
	case stowagev1alpha1.ReasonReady:
		cured := PodEvent{Kind: corev1.EventTypeNormal, Reason: event.SuccessfulMountVolume, Action: "Mounting", Note: condition.Message}
		return cured, last.Kind == corev1.EventTypeWarning
	case stowagev1alpha1.ReasonPending:
		return PodEvent{}, false
	case ReasonSizeLimitExceeded:
		return PodEvent{Kind: corev1.EventTypeWarning, Reason: event.SizeLimitExceeded, Action: "Measuring", Note: wrongWith(volumes)}, true
	default:
		return PodEvent{Kind: corev1.EventTypeWarning, Reason: event.FailedMount, Action: "Mounting", Note: wrongWith(volumes)}, true
	}
}

// wrongWith joins the errors of the volumes that don't just wait.
func wrongWith(volumes []Progress) string {
	var messages []string
	for _, volume := range volumes {
		if volume.Err != nil && !resolve.IsWait(volume.Err) {
			messages = append(messages, volume.String())
		}
	}
	return strings.Join(messages, "; ")
}

// UnmountFailed is the event for volumes that can't be unmounted.
func UnmountFailed(err error) PodEvent {
	return PodEvent{Kind: corev1.EventTypeWarning, Reason: event.FailedUnmount, Action: "Unmounting", Note: err.Error()}
}

// UnmountCondition is the condition of a pod that is being deleted, and that volumes keep.
func UnmountCondition(problems []error) corev1.PodCondition {
	return corev1.PodCondition{
		Type: stowagev1alpha1.VolumesReadyCondition, Status: corev1.ConditionFalse, Reason: ReasonFailedUnmount,
		Message: message.Cut(strings.ReplaceAll(errors.Join(problems...).Error(), "\n", "; "), message.MaxCondition),
	}
}

// Transition returns a condition with the time since when its status holds. isNew is false if the pod has the
// condition already.
func Transition(pod *corev1.Pod, condition corev1.PodCondition, now time.Time) (_ corev1.PodCondition, isNew bool) {
	condition.LastTransitionTime = metav1.NewTime(now)
	for _, old := range pod.Status.Conditions {
		if old.Type == condition.Type && old.Status == condition.Status {
			condition.LastTransitionTime = old.LastTransitionTime
			return condition, old.Reason != condition.Reason || old.Message != condition.Message
		}
	}
	return condition, true
}

// OrGone is the progress of a volume with a disk that is gone. The lost disk is reported first,
// before what the volume waits for.
func OrGone(gone error, at Progress) Progress {
	switch {
	case gone == nil:
		return at
	case at.Err == nil || resolve.IsWait(at.Err) || errors.Is(at.Err, volumes.ErrGone):
		at.Err = gone
	default:
		at.Err = fmt.Errorf("%w; %w", gone, at.Err)
	}
	return at
}
