package recycling

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/message"
	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/mount/filetree"
	"github.com/stowage-dev/stowage/internal/mount/safepath"
)

// reasonOf is the reason of the condition that tells of an error.
func reasonOf(err error) string {
	reasons := []struct {
		kind   error
		reason string
	}{
		{errNoRoot, stowagev1alpha1.ReasonNotSupported},
		{errIsRoot, stowagev1alpha1.ReasonPathOutsideRoot},
		{safepath.ErrOutside, stowagev1alpha1.ReasonPathOutsideRoot},
		{errInUse, stowagev1alpha1.ReasonInUse},
		{filetree.ErrUnfinished, stowagev1alpha1.ReasonPending},
		{mount.ErrMounted, stowagev1alpha1.ReasonInUse},
		{os.ErrNotExist, stowagev1alpha1.ReasonPathMissing},
		{unix.ENOTDIR, stowagev1alpha1.ReasonNotADirectory},
	}
	for _, candidate := range reasons {
		if errors.Is(err, candidate.kind) {
			return candidate.reason
		}
	}
	return stowagev1alpha1.ReasonUnavailable
}

// messageOf is what the user reads.
func (r *Reconciler) messageOf(err error) string {
	switch reasonOf(err) {
	case stowagev1alpha1.ReasonNotSupported:
		return fmt.Sprintf("%v: it was started without --recycle-root, the folder in which it may", err)
	case stowagev1alpha1.ReasonPathOutsideRoot:
		return fmt.Sprintf("%v: only directories below the agent's --recycle-root, %s, are emptied", err, r.Folder.Root)
	case stowagev1alpha1.ReasonPathMissing:
		return fmt.Sprintf("%v: mount the disk, or make the directory", err)
	case stowagev1alpha1.ReasonPending:
		return fmt.Sprintf("%v: removing goes on", err)
	default:
		return err.Error()
	}
}

func isEmptied(of *stowagev1alpha1.NodeRecycling) bool {
	return meta.IsStatusConditionTrue(of.Status.Conditions, stowagev1alpha1.EmptiedCondition)
}

// setEmptied sets the condition in memory.
func setEmptied(of *stowagev1alpha1.NodeRecycling, reason, text string) {
	status := metav1.ConditionFalse
	if reason == stowagev1alpha1.ReasonReady {
		status = metav1.ConditionTrue
	}
	meta.SetStatusCondition(&of.Status.Conditions, metav1.Condition{
		Type: stowagev1alpha1.EmptiedCondition, Status: status, Reason: reason, Message: message.Cut(text, message.MaxCondition), ObservedGeneration: of.Generation,
	})
}

// retryOf is when to try again after an error.
func retryOf(err error) ctrl.Result {
	switch reasonOf(err) {
	case stowagev1alpha1.ReasonInUse:
		return ctrl.Result{RequeueAfter: inUseRetry}
	case stowagev1alpha1.ReasonPending:
		return ctrl.Result{RequeueAfter: sliceRetry}
	case stowagev1alpha1.ReasonNotSupported:
		return ctrl.Result{}
	default:
		return ctrl.Result{RequeueAfter: problemRetry}
	}
}
