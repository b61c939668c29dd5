// Package condition reports in the status of NodeDisks, NodeVolumes and NodeRecyclings. It turns
// kinds of errors into reasons, sets conditions, and finds those that deserve an event. The agents
// of local disks call it. It changes objects in memory only.
package condition

import (
	"errors"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/message"
)

// Reasons are the reasons that conditions have for kinds of errors. The first kind that an
// error wraps decides.
type Reasons []struct {
	Kind   error
	Reason string
}

// Of returns the reason for an error: Unavailable for one of no listed kind.
func (r Reasons) Of(err error) string {
	for _, candidate := range r {
		if errors.Is(err, candidate.Kind) {
			return candidate.Reason
		}
	}
	return stowagev1alpha1.ReasonUnavailable
}

// Set sets a condition: True for reason Ready, else False. It cuts the message: errors hold
// names of files, and the API server refuses a status that is too long.
func Set(conditions *[]metav1.Condition, set metav1.Condition) {
	set.Status = metav1.ConditionFalse
	if set.Reason == stowagev1alpha1.ReasonReady {
		set.Status = metav1.ConditionTrue
	}
	set.Message = message.Cut(set.Message, message.MaxCondition)
	meta.SetStatusCondition(conditions, set)
}

// NewProblem returns the condition of a type if it is False now for a reason that it didn't
// have before; else nil. One problem is one event.
func NewProblem(before, now []metav1.Condition, kind string) *metav1.Condition {
	was, is := meta.FindStatusCondition(before, kind), meta.FindStatusCondition(now, kind)
	if is == nil || is.Status != metav1.ConditionFalse || was != nil && was.Reason == is.Reason {
		return nil
	}
	return is
}
