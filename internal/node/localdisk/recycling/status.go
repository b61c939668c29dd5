package recycling

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/mount/filetree"
	"github.com/stowage-dev/stowage/internal/mount/safepath"
	"github.com/stowage-dev/stowage/internal/node/localdisk/condition"
)

const (
	// staleRetry is the wait after a reconcile that read a stale cache.
	staleRetry = 200 * time.Millisecond
	// inUseRetry is the wait before the next attempt with a directory that is mounted.
	inUseRetry = 5 * time.Second
	// problemRetry is the wait after a problem that may go away.
	problemRetry = 30 * time.Second
	// sliceRetry is the wait between two slices of one removal.
	sliceRetry = 10 * time.Millisecond
)

var reasons = condition.Reasons{
	{Kind: errNoRoot, Reason: stowagev1alpha1.ReasonNotSupported},
	{Kind: errIsRoot, Reason: stowagev1alpha1.ReasonPathOutsideRoot},
	{Kind: safepath.ErrOutside, Reason: stowagev1alpha1.ReasonPathOutsideRoot},
	{Kind: errInUse, Reason: stowagev1alpha1.ReasonInUse},
	{Kind: filetree.ErrUnfinished, Reason: stowagev1alpha1.ReasonPending},
	{Kind: mount.ErrMounted, Reason: stowagev1alpha1.ReasonInUse},
	{Kind: os.ErrNotExist, Reason: stowagev1alpha1.ReasonPathMissing},
	{Kind: unix.ENOTDIR, Reason: stowagev1alpha1.ReasonNotADirectory},
}

// messageOf returns the message of the condition for an error, with what to do.
func messageOf(err error, root string) string {
	switch reasons.Of(err) {
	case stowagev1alpha1.ReasonNotSupported:
		return fmt.Sprintf("%v: it was started without --recycle-root, the folder in which it may", err)
	case stowagev1alpha1.ReasonPathOutsideRoot:
		return fmt.Sprintf("%v: only directories below the agent's --recycle-root, %s, are emptied", err, root)
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
func setEmptied(of *stowagev1alpha1.NodeRecycling, reason, message string) {
	condition.Set(&of.Status.Conditions, metav1.Condition{
		Type: stowagev1alpha1.EmptiedCondition, Reason: reason, Message: message, ObservedGeneration: of.Generation,
	})
}

// retryOf returns when to try again after an error.
func retryOf(err error) ctrl.Result {
	switch reasons.Of(err) {
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
