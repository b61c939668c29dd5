package localvolume

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/device"
	"github.com/stowage-dev/stowage/internal/duplicate"
	"github.com/stowage-dev/stowage/internal/message"
	"github.com/stowage-dev/stowage/internal/mount"
)

// Errors that the spec of a LocalVolume or the state of its directory lead to.
var (
	errNotSupported = errors.New("not supported by this version of Stowage")
	errInvalid      = errors.New("the LocalVolume is invalid")
	errLost         = errors.New("the volume is lost")
	errKept         = errors.New("the object was deleted, and the data stays")
	errQueued       = errors.New("waiting for its turn")
	errPending      = errors.New("waiting")
)

// checkSpec says whether this version can make such a volume.
func checkSpec(volume *stowagev1alpha1.LocalVolume) error {
	if volume.Spec.VolumeMode == corev1.PersistentVolumeBlock && volume.Spec.Layout != stowagev1alpha1.LayoutImage {
		return fmt.Errorf("volumeMode Block is %w in layout %s: use Filesystem, or layout Image", errNotSupported, volume.Spec.Layout)
	}
	return checkName(volume)
}

// checkName makes sure that the name is one that Stowage makes for this claim:
// pvc-<uid>, or pvc-<uid>-<n> for a further attempt. A directory of that name can
// be nobody else's, and so may be adopted, and removed.
func checkName(volume *stowagev1alpha1.LocalVolume) error {
	uid := string(volume.Spec.ClaimRef.UID)
	attempt, found := strings.CutPrefix(volume.Name, "pvc-"+uid)
	number, numbered := strings.CutPrefix(attempt, "-")
	if uid == "" || !found || strings.Trim(number, "0123456789") != "" || numbered != (number != "") || !numbered && attempt != "" {
		return fmt.Errorf("%w: its name must be pvc-%s, after the claim that it is for", errInvalid, uid)
	}
	return nil
}

// reasonOf is the reason of the condition that tells of an error.
func reasonOf(err error) string {
	reasons := []struct {
		kind   error
		reason string
	}{
		{errNotSupported, stowagev1alpha1.ReasonNotSupported},
		{errInvalid, stowagev1alpha1.ReasonInvalid},
		{errLost, stowagev1alpha1.ReasonLost},
		{errKept, stowagev1alpha1.ReasonDeleting},
		{errPending, stowagev1alpha1.ReasonPending},
		{errExhausted, stowagev1alpha1.ReasonExhausted},
		{unix.ENOSPC, stowagev1alpha1.ReasonExhausted},
		{unix.EDQUOT, stowagev1alpha1.ReasonExhausted},
		{device.ErrTooSmall, stowagev1alpha1.ReasonInvalid},
		{device.ErrUnknownType, stowagev1alpha1.ReasonInvalid},
		{duplicate.ErrTooDeep, stowagev1alpha1.ReasonInvalid},
		{errQueued, stowagev1alpha1.ReasonPending},
		{mount.ErrUnfinished, stowagev1alpha1.ReasonPending},
		{errInUse, stowagev1alpha1.ReasonInUse},
		{mount.ErrMounted, stowagev1alpha1.ReasonInUse},
		{mount.ErrOutside, stowagev1alpha1.ReasonPathOutsideBase},
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

// messageOf is what the user reads.
func messageOf(err error, base Base) string {
	if errors.Is(err, mount.ErrOutside) {
		return fmt.Sprintf("%v: the node agent's --local-base is %s: use a path below it, or change the flag and the host path of the node agent's DaemonSet", err, base)
	}
	if errors.Is(err, mount.ErrUnfinished) {
		return fmt.Sprintf("%v: removing goes on", err)
	}
	return err.Error()
}

func isProvisioned(volume *stowagev1alpha1.LocalVolume) bool {
	return meta.IsStatusConditionTrue(volume.Status.Conditions, stowagev1alpha1.ProvisionedCondition)
}

// setProblem says in both conditions what is wrong; a volume that was made stays
// one that was made.
func setProblem(volume *stowagev1alpha1.LocalVolume, reason, message string) {
	if !isProvisioned(volume) {
		setCondition(volume, stowagev1alpha1.ProvisionedCondition, reason, message)
	}
	setCondition(volume, stowagev1alpha1.ReadyCondition, reason, message)
}

// setCondition sets a condition in memory.
func setCondition(volume *stowagev1alpha1.LocalVolume, kind, reason, text string) {
	status := metav1.ConditionFalse
	if reason == stowagev1alpha1.ReasonReady {
		status = metav1.ConditionTrue
	}
	meta.SetStatusCondition(&volume.Status.Conditions, metav1.Condition{
		Type: kind, Status: status, Reason: reason, Message: message.Cut(text, message.MaxCondition), ObservedGeneration: volume.Generation,
	})
}

func isOutside(err error) bool { return errors.Is(err, mount.ErrOutside) }

// retryOf is when to try again after an error.
func retryOf(err error) ctrl.Result {
	switch {
	case errors.Is(err, mount.ErrUnfinished):
		return ctrl.Result{RequeueAfter: sliceRetry}
	case isTerminal(err):
		return ctrl.Result{}
	case reasonOf(err) == stowagev1alpha1.ReasonInUse || reasonOf(err) == stowagev1alpha1.ReasonPending:
		return ctrl.Result{RequeueAfter: inUseRetry}
	default:
		return ctrl.Result{RequeueAfter: problemRetry}
	}
}
