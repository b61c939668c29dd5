package volumeagent

import (
	"errors"
	"slices"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/device"
	"github.com/stowage-dev/stowage/internal/duplicate"
	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/mount/filetree"
	"github.com/stowage-dev/stowage/internal/mount/safepath"
	"github.com/stowage-dev/stowage/internal/node/localdisk/condition"
	"github.com/stowage-dev/stowage/internal/node/localdisk/layout"
	"github.com/stowage-dev/stowage/internal/node/localdisk/spec"
	"github.com/stowage-dev/stowage/internal/patch"
)

const (
	// staleRetry is the wait after a reconcile that read a stale cache.
	staleRetry = 200 * time.Millisecond
	// inUseRetry is the wait before the next attempt to remove a volume that is mounted.
	inUseRetry = 2 * time.Second
	// problemRetry is the wait after a problem that may go away, such as a full disk.
	problemRetry = 30 * time.Second
	// checkInterval is the time between two inspections of a volume that doesn't change.
	checkInterval = time.Minute
	// sliceRetry is the wait between two slices of one removal: others take the slot then.
	sliceRetry = 10 * time.Millisecond
)

var reasons = condition.Reasons{
	{Kind: layout.ErrNotSupported, Reason: stowagev1alpha1.ReasonNotSupported},
	{Kind: layout.ErrInvalid, Reason: stowagev1alpha1.ReasonInvalid},
	{Kind: layout.ErrLost, Reason: stowagev1alpha1.ReasonLost},
	{Kind: layout.ErrKept, Reason: stowagev1alpha1.ReasonDeleting},
	{Kind: layout.ErrPending, Reason: stowagev1alpha1.ReasonPending},
	{Kind: layout.ErrExhausted, Reason: stowagev1alpha1.ReasonExhausted},
	{Kind: unix.ENOSPC, Reason: stowagev1alpha1.ReasonExhausted},
	{Kind: unix.EDQUOT, Reason: stowagev1alpha1.ReasonExhausted},
	{Kind: device.ErrTooSmall, Reason: stowagev1alpha1.ReasonInvalid},
	{Kind: device.ErrUnknownType, Reason: stowagev1alpha1.ReasonInvalid},
	{Kind: duplicate.ErrTooDeep, Reason: stowagev1alpha1.ReasonInvalid},
	{Kind: layout.ErrQueued, Reason: stowagev1alpha1.ReasonPending},
	{Kind: filetree.ErrUnfinished, Reason: stowagev1alpha1.ReasonPending},
	{Kind: layout.ErrInUse, Reason: stowagev1alpha1.ReasonInUse},
	{Kind: mount.ErrMounted, Reason: stowagev1alpha1.ReasonInUse},
	{Kind: safepath.ErrOutside, Reason: stowagev1alpha1.ReasonPathOutsideBase},
}

// isTerminal reports whether an error stays until the spec or the agent is another.
func isTerminal(err error) bool {
	terminal := []string{stowagev1alpha1.ReasonNotSupported, stowagev1alpha1.ReasonInvalid, stowagev1alpha1.ReasonDeleting}
	return slices.Contains(terminal, reasons.Of(err))
}

// retryOf returns when to try again after an error.
func retryOf(err error) ctrl.Result {
	switch {
	case errors.Is(err, filetree.ErrUnfinished):
		return ctrl.Result{RequeueAfter: sliceRetry}
	case isTerminal(err):
		return ctrl.Result{}
	case reasons.Of(err) == stowagev1alpha1.ReasonInUse || reasons.Of(err) == stowagev1alpha1.ReasonPending:
		return ctrl.Result{RequeueAfter: inUseRetry}
	default:
		return ctrl.Result{RequeueAfter: problemRetry}
	}
}

// setProblem sets both conditions in memory. Provisioned stays True once it was True: a
// volume that exists is never made again.
func setProblem(volume *stowagev1alpha1.NodeVolume, reason, message string) {
	if !spec.IsProvisioned(volume) {
		setCondition(volume, stowagev1alpha1.ProvisionedCondition, reason, message)
	}
	setCondition(volume, stowagev1alpha1.ReadyCondition, reason, message)
}

// statusChange is the merge patch that writes a volume's status. Of a volume that had none it is the whole status. To compute it from
// two whole objects took a twentieth of the agent's time while volumes were made.
func statusChange(stored, volume *stowagev1alpha1.NodeVolume) client.Patch {
	if !equality.Semantic.DeepEqual(stored.Status, stowagev1alpha1.NodeVolumeStatus{}) {
		return client.MergeFrom(stored)
	}
	return patch.Written{Kind: types.MergePatchType, Body: struct {
		Status stowagev1alpha1.NodeVolumeStatus `json:"status"`
	}{volume.Status}}
}

// setGranted sets in memory that a volume has the capacity that it requests.
func setGranted(volume *stowagev1alpha1.NodeVolume) {
	if isSmaller(volume) {
		volume.Status.Capacity = new(volume.Spec.Capacity.DeepCopy())
	}
	setCondition(volume, stowagev1alpha1.GrantedCondition, stowagev1alpha1.ReasonReady, "the volume has the requested capacity")
}

// isSmaller reports whether a volume has less than the capacity that it requests.
func isSmaller(volume *stowagev1alpha1.NodeVolume) bool {
	had := volume.Status.Capacity
	return had == nil || had.Cmp(volume.Spec.Capacity) < 0
}

func setCondition(volume *stowagev1alpha1.NodeVolume, kind, reason, message string) {
	condition.Set(&volume.Status.Conditions, metav1.Condition{Type: kind, Reason: reason, Message: message, ObservedGeneration: volume.Generation})
}
