package volumeattachment

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/internal/attachintent"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/message"
	"github.com/stowage-dev/stowage/internal/patch"
	"github.com/stowage-dev/stowage/internal/wrap"
)

const (
	// retryRefused is the delay before the retry of a refused call: the obstacle may disappear
	// without an event.
	retryRefused = 30 * time.Second
	// retryInvalid is the delay before the retry of a call that needs action by a person. Most
	// such changes wake the attachment, those in a cloud do not.
	retryInvalid = 5 * time.Minute
	// RetryUnfinished is the delay before the next call for work in flight. The backend has
	// already waited for the work as long as it can, and a pod waits for it.
	RetryUnfinished = 3 * time.Second
)

// Reasons of events, as Kubernetes' own controllers use them.
const (
	reasonFailedDetach = "FailedDetachVolume"
	reasonForcedDetach = "ForcedDetachVolume"
	reasonSlow         = "SlowAttachVolume"
	ReasonDetached     = "VolumeDetachedElsewhere"
)

// attachmentStatusPatch changes an attachment's status. The UID protects the next attachment
// of the same name.
func attachmentStatusPatch(attachment *storagev1.VolumeAttachment, status any) client.Patch {
	return patch.Written{Kind: types.MergePatchType, Body: struct {
		Metadata patch.Identity `json:"metadata"`
		Status   any            `json:"status"`
	}{patch.Identity{UID: attachment.UID}, status}}
}

// VolumeError is a storagev1.VolumeError that replaces all fields of an earlier one.
type VolumeError struct {
	Time      metav1.Time `json:"time"`
	Message   string      `json:"message"`
	ErrorCode *int32      `json:"errorCode"`
}

// codes are gRPC's numbers for kinds of errors, which Kubernetes uses. The kubelet reads that
// of Exhausted, and updates how many devices its node can have.
var codes = map[backend.ErrorKind]int32{
	backend.Invalid: 3, backend.NotFound: 5, backend.Exhausted: 8, backend.WrongNode: 9, backend.Conflict: 9,
	backend.NotReady: 14, backend.Unavailable: 14,
}

func saidOf(err error) string { return message.Cut(err.Error(), message.MaxStatus) }

// NewVolumeError returns an error for the status of an attachment, cut to the API's limit.
func NewVolumeError(err error, now time.Time) *VolumeError {
	said := &VolumeError{Time: metav1.NewTime(now), Message: saidOf(err)}
	if code, known := codes[backend.KindOf(err)]; known {
		said.ErrorCode = &code
	}
	return said
}

// setAttached sets status.attached, and the metadata by which the node finds the device: one
// write, which also removes an earlier error.
func (r *Reconciler) setAttached(ctx context.Context, attachment *storagev1.VolumeAttachment, metadata map[string]string) error {
	changed := patch.Changes(attachment.Status.AttachmentMetadata, metadata, func(a, b string) bool { return a == b })
	if attachment.Status.Attached && len(changed) == 0 && attachment.Status.AttachError == nil {
		return nil
	}
	err := r.client.Status().Patch(ctx, attachment, attachmentStatusPatch(attachment, struct {
		Attached    bool               `json:"attached"`
		Metadata    map[string]*string `json:"attachmentMetadata,omitempty"`
		AttachError *VolumeError       `json:"attachError"`
	}{true, changed, nil}))
	r.forget(client.ObjectKeyFromObject(attachment))
	return wrap.Error(client.IgnoreNotFound(err), "noting that attachment %s is attached", attachment.Name)
}

// failAttach records, once, why the attach failed, and returns when to retry.
func (r *Reconciler) failAttach(ctx context.Context, attachment *storagev1.VolumeAttachment, pv *corev1.PersistentVolume, err error) (ctrl.Result, error) {
	if wait := r.quiet(attachment, pv, err); wait > 0 {
		return ctrl.Result{RequeueAfter: wait}, nil
	}
	if isInVain(attachment.Status.AttachError, err) {
		return r.retryOf(err, nil)
	}
	if said := attachment.Status.AttachError; said == nil || said.Message != saidOf(err) {
		writing := r.client.Status().Patch(ctx, attachment, attachmentStatusPatch(attachment, struct {
			AttachError *VolumeError `json:"attachError"`
		}{NewVolumeError(err, r.clock.Now())}))
		if writing != nil {
			return ctrl.Result{}, wrap.Error(client.IgnoreNotFound(writing), "noting why attachment %s fails", attachment.Name)
		}
	}
	r.tellOfFailure(attachment, pv, err, attachintent.ReasonFailedAttach, fmt.Sprintf("attaching to node %s: %v", attachment.Spec.NodeName, err))
	return r.retryOf(err, fmt.Errorf("attaching %s: %w", attachment.Name, err))
}

// failDetach records, once, why an attachment is still there.
func (r *Reconciler) failDetach(ctx context.Context, leaves *leaving, err error) (ctrl.Result, error) {
	if wait := r.quiet(leaves.attachment, leaves.pv, err); wait > 0 {
		return ctrl.Result{RequeueAfter: wait}, nil
	}
	if leaves.refused == nil && backend.KindOf(err) == "" {
		return ctrl.Result{}, err
	}
	if isInVain(leaves.attachment.Status.DetachError, err) {
		return r.retryOf(err, nil)
	}
	if err := r.setDetachError(ctx, leaves, err); err != nil {
		return ctrl.Result{}, err
	}
	return r.retryOf(err, fmt.Errorf("detaching %s: %w", leaves.attachment.Name, err))
}

func (r *Reconciler) setDetachError(ctx context.Context, leaves *leaving, err error) error {
	attachment := leaves.attachment
	if said := attachment.Status.DetachError; said == nil || said.Message != saidOf(err) {
		writing := r.client.Status().Patch(ctx, attachment, attachmentStatusPatch(attachment, struct {
			DetachError *VolumeError `json:"detachError"`
		}{NewVolumeError(err, r.clock.Now())}))
		if writing != nil {
			return wrap.Error(client.IgnoreNotFound(writing), "noting why attachment %s stays", attachment.Name)
		}
	}
	r.tell(attachment, leaves.pv, reasonFailedDetach, fmt.Sprintf("detaching from node %s: %v", attachment.Spec.NodeName, err))
	return nil
}

// isInVain reports whether a call was not made, because the storage requested a pause: the
// error adds nothing to the recorded one.
func isInVain(said *storagev1.VolumeError, err error) bool {
	return said != nil && !backend.PausedUntil(err).IsZero()
}

// retryOf returns when to retry: at a fixed time if a backend refused the call or requested a
// pause, else with backoff.
func (r *Reconciler) retryOf(err, returned error) (ctrl.Result, error) {
	if until := backend.PausedUntil(err); !until.IsZero() {
		return ctrl.Result{RequeueAfter: max(until.Sub(r.clock.Now()), attachBackoff)}, nil
	}
	switch backend.KindOf(err) {
	case backend.Invalid:
		return ctrl.Result{RequeueAfter: retryInvalid}, nil
	case backend.NotFound, backend.Conflict, backend.Exhausted, backend.WrongNode:
		return ctrl.Result{RequeueAfter: retryRefused}, nil
	default:
		return ctrl.Result{}, returned
	}
}

// tell records an event on an attachment, on its PersistentVolume if there is one, and on more
// objects, unless it equals the last one.
func (r *Reconciler) tell(attachment *storagev1.VolumeAttachment, pv *corev1.PersistentVolume, reason, message string, more ...runtime.Object) {
	if !r.recorded.IsNews(client.ObjectKeyFromObject(attachment), message) {
		return
	}
	for _, object := range append(more, attachment) {
		r.events.Eventf(object, nil, corev1.EventTypeWarning, reason, "Attach", "%s", message)
	}
	if pv != nil {
		r.events.Eventf(pv, nil, corev1.EventTypeWarning, reason, "Attach", "%s", message)
	}
}

// tellOfFailure records the event of a failure. If a person has to act, the volume's claim
// gets it, too: most users see only the claim's namespace.
func (r *Reconciler) tellOfFailure(attachment *storagev1.VolumeAttachment, pv *corev1.PersistentVolume, err error, reason, message string) {
	var claim []runtime.Object
	if backend.KindOf(err) == backend.Invalid && pv != nil && pv.Spec.ClaimRef != nil {
		ref := pv.Spec.ClaimRef.DeepCopy()
		ref.APIVersion, ref.Kind = corev1.SchemeGroupVersion.String(), "PersistentVolumeClaim"
		claim = append(claim, ref)
	}
	r.tell(attachment, pv, reason, message, claim...)
}
