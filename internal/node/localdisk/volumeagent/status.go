package volumeagent

import (
	"errors"
	"slices"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/device"
	"github.com/stowage-dev/stowage/internal/duplicate"
	"github.com/stowage-dev/stowage/internal/message"
	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/mount/filetree"
	"github.com/stowage-dev/stowage/internal/mount/safepath"
	"github.com/stowage-dev/stowage/internal/node/localdisk/layout"
	"github.com/stowage-dev/stowage/internal/node/localdisk/spec"
)

// reasonOf is the reason of the condition that tells of an error.
func reasonOf(err error) string {
	reasons := []struct {
		kind   error
		reason string
	}{
		{layout.ErrNotSupported, stowagev1alpha1.ReasonNotSupported},
		{layout.ErrInvalid, stowagev1alpha1.ReasonInvalid},
		{layout.ErrLost, stowagev1alpha1.ReasonLost},
		{layout.ErrKept, stowagev1alpha1.ReasonDeleting},
		{layout.ErrPending, stowagev1alpha1.ReasonPending},
		{layout.ErrExhausted, stowagev1alpha1.ReasonExhausted},
		{unix.ENOSPC, stowagev1alpha1.ReasonExhausted},
		{unix.EDQUOT, stowagev1alpha1.ReasonExhausted},
		{device.ErrTooSmall, stowagev1alpha1.ReasonInvalid},
		{device.ErrUnknownType, stowagev1alpha1.ReasonInvalid},
		{duplicate.ErrTooDeep, stowagev1alpha1.ReasonInvalid},
		{layout.ErrQueued, stowagev1alpha1.ReasonPending},
		{filetree.ErrUnfinished, stowagev1alpha1.ReasonPending},
		{layout.ErrInUse, stowagev1alpha1.ReasonInUse},
		{mount.ErrMounted, stowagev1alpha1.ReasonInUse},
		{safepath.ErrOutside, stowagev1alpha1.ReasonPathOutsideBase},
	}
	for _, candidate := range reasons {
		if errors.Is(err, candidate.kind) {
			return candidate.reason
		}
	}
	return stowagev1alpha1.ReasonUnavailable
}

// isTerminal says whether only another spec or another agent cures an error.
func isTerminal(err error) bool {
	terminal := []string{stowagev1alpha1.ReasonNotSupported, stowagev1alpha1.ReasonInvalid, stowagev1alpha1.ReasonDeleting}
	return slices.Contains(terminal, reasonOf(err))
}

// setProblem says in both conditions what is wrong; a volume that was made stays
// one that was made.
func setProblem(volume *stowagev1alpha1.NodeVolume, reason, message string) {
	if !spec.IsProvisioned(volume) {
		setCondition(volume, stowagev1alpha1.ProvisionedCondition, reason, message)
	}
	setCondition(volume, stowagev1alpha1.ReadyCondition, reason, message)
}

// setCondition sets a condition in memory.
func setCondition(volume *stowagev1alpha1.NodeVolume, kind, reason, text string) {
	status := metav1.ConditionFalse
	if reason == stowagev1alpha1.ReasonReady {
		status = metav1.ConditionTrue
	}
	meta.SetStatusCondition(&volume.Status.Conditions, metav1.Condition{
		Type: kind, Status: status, Reason: reason, Message: message.Cut(text, message.MaxCondition), ObservedGeneration: volume.Generation,
	})
}

// retryOf is when to try again after an error.
func retryOf(err error) ctrl.Result {
	switch {
	case errors.Is(err, filetree.ErrUnfinished):
		return ctrl.Result{RequeueAfter: sliceRetry}
	case isTerminal(err):
		return ctrl.Result{}
	case reasonOf(err) == stowagev1alpha1.ReasonInUse || reasonOf(err) == stowagev1alpha1.ReasonPending:
		return ctrl.Result{RequeueAfter: inUseRetry}
	default:
		return ctrl.Result{RequeueAfter: problemRetry}
	}
}
