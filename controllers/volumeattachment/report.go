package volumeattachment

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/effect"
	"github.com/stowage-dev/stowage/internal/event"
	"github.com/stowage-dev/stowage/internal/patch"
	"github.com/stowage-dev/stowage/internal/wake"
	"github.com/stowage-dev/stowage/internal/wrap"
)

const (
	// quietNotReady is how long an error that is usually short is not written: kubelets wait
	// longer and longer for an attachment that has an error.
	quietNotReady = 30 * time.Second
	// quietUnfinished is how long work may be in flight until an event reports it.
	quietUnfinished = 2 * time.Minute
)

// warnings records events about attachments, each once.
type warnings struct {
	events events.EventRecorder
	last   event.Last
	// forced are the attachments with an event about a detach by force.
	forced event.Last
}

// record records an event on an attachment, on its PersistentVolume if there is one, and on
// more objects, unless it equals the last one.
func (w *warnings) record(attachment *storagev1.VolumeAttachment, pv *corev1.PersistentVolume, reason, message string, more ...runtime.Object) {
	if !w.last.IsNew(client.ObjectKeyFromObject(attachment), message) {
		return
	}
	if pv != nil {
		more = append(more, pv)
	}
	w.events.Eventf(attachment, nil, corev1.EventTypeWarning, reason, "Attach", "%s", message)
	for _, object := range more {
		event.Unlogged(w.events).Eventf(object, nil, corev1.EventTypeWarning, reason, "Attach", "%s", message)
	}
}

// recordForced records an event that a detach is by force, and reports whether it did: once,
// however often the call is repeated.
func (w *warnings) recordForced(attachment *storagev1.VolumeAttachment, pv *corev1.PersistentVolume, why string) bool {
	if !w.forced.IsNew(client.ObjectKeyFromObject(attachment), string(attachment.UID)) {
		return false
	}
	w.record(attachment, pv, event.ForcedDetachVolume,
		fmt.Sprintf("detaching it from node %s, which has not released it: %s", attachment.Spec.NodeName, why))
	return true
}

// claimToWarn returns the claim of a volume if a person has to act on an error: most users see
// only the claim's namespace.
func claimToWarn(pv *corev1.PersistentVolume, err error) []runtime.Object {
	if backend.KindOf(err) != backend.Invalid || pv == nil || pv.Spec.ClaimRef == nil {
		return nil
	}
	ref := pv.Spec.ClaimRef.DeepCopy()
	ref.APIVersion, ref.Kind = corev1.SchemeGroupVersion.String(), "PersistentVolumeClaim"
	return []runtime.Object{ref}
}

// reporter writes the outcome of calls to the status of attachments, and records events about
// failures.
type reporter struct {
	client   client.Client
	clock    clock.PassiveClock
	warnings warnings
	// notReady is since when calls fail with an error that is usually short, and unfinished
	// since when work is in flight, by attachment.
	notReady, unfinished wake.Instants
	// refused is since when calls are refused.
	refused wake.Instants
}

func newReporter(deps reconciler.Dependencies) *reporter {
	return &reporter{client: deps.Client, clock: deps.Clock, warnings: warnings{events: deps.Events}}
}

// setAttached sets status.attached, and the metadata by which the node finds the device: one
// write, which also removes an earlier error.
func (r *reporter) setAttached(ctx context.Context, attachment *storagev1.VolumeAttachment, pv *corev1.PersistentVolume, metadata map[string]string) error {
	changed := patch.Changes(attachment.Status.AttachmentMetadata, metadata, func(a, b string) bool { return a == b })
	if attachment.Status.Attached && len(changed) == 0 && attachment.Status.AttachError == nil {
		return nil
	}
	before := attachment.Status.Attached
	err := r.client.Status().Patch(ctx, attachment, statusPatch(attachment, struct {
		Attached    bool               `json:"attached"`
		Metadata    map[string]*string `json:"attachmentMetadata,omitempty"`
		AttachError *VolumeError       `json:"attachError"`
	}{true, changed, nil}))
	r.forget(client.ObjectKeyFromObject(attachment))
	if err == nil && !before {
		effect.Log(ctx, effect.Attached, attachment.CreationTimestamp.Time, attachment, pv)
	}
	return wrap.Error(client.IgnoreNotFound(err), "setting attachment %s to attached", attachment.Name)
}

// statusPatch changes an attachment's status. The UID protects the next attachment of the same
// name.
func statusPatch(attachment *storagev1.VolumeAttachment, status any) client.Patch {
	return patch.Written{Kind: types.MergePatchType, Body: struct {
		Metadata patch.Identity `json:"metadata"`
		Status   any            `json:"status"`
	}{patch.Identity{UID: attachment.UID}, status}}
}

// failAttach records, once, why the attach failed, and returns when to retry.
func (r *reporter) failAttach(ctx context.Context, attachment *storagev1.VolumeAttachment, pv *corev1.PersistentVolume, err error) (ctrl.Result, error) {
	if wait := r.quiet(attachment, pv, err); wait > 0 {
		return ctrl.Result{RequeueAfter: wait}, nil
	}
	if isPaused(attachment.Status.AttachError, err) {
		return r.retryOf(attachment, err, nil)
	}
	if err := r.setError(ctx, attachment, "attachError", attachment.Status.AttachError, err); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	r.warnings.record(attachment, pv, event.FailedAttachVolume,
		fmt.Sprintf("attaching to node %s: %v", attachment.Spec.NodeName, err), claimToWarn(pv, err)...)
	return r.retryOf(attachment, err, fmt.Errorf("attaching %s: %w", attachment.Name, err))
}

// failDetach records, once, why an attachment is still there, and returns when to retry.
func (r *reporter) failDetach(ctx context.Context, attachment *storagev1.VolumeAttachment, pv *corev1.PersistentVolume, err error) (ctrl.Result, error) {
	if wait := r.quiet(attachment, pv, err); wait > 0 {
		return ctrl.Result{RequeueAfter: wait}, nil
	}
	if isPaused(attachment.Status.DetachError, err) {
		return r.retryOf(attachment, err, nil)
	}
	if err := r.setDetachError(ctx, attachment, pv, err); err != nil {
		return ctrl.Result{}, err
	}
	return r.retryOf(attachment, err, fmt.Errorf("detaching %s: %w", attachment.Name, err))
}

func (r *reporter) setDetachError(ctx context.Context, attachment *storagev1.VolumeAttachment, pv *corev1.PersistentVolume, err error) error {
	if err := r.setError(ctx, attachment, "detachError", attachment.Status.DetachError, err); err != nil {
		return client.IgnoreNotFound(err)
	}
	r.warnings.record(attachment, pv, event.FailedDetachVolume, fmt.Sprintf("detaching from node %s: %v", attachment.Spec.NodeName, err))
	return nil
}

// setError writes an error to a field of an attachment's status, unless it is there already.
func (r *reporter) setError(ctx context.Context, attachment *storagev1.VolumeAttachment, field string, recorded *storagev1.VolumeError, err error) error {
	if recorded != nil && recorded.Message == messageOf(err) {
		return nil
	}
	status := map[string]*VolumeError{field: NewVolumeError(err, r.clock.Now())}
	return wrap.Error(r.client.Status().Patch(ctx, attachment, statusPatch(attachment, status)), "setting %s of attachment %s", field, attachment.Name)
}

// quiet returns when to call again after an error that is not reported yet; 0 if it must be
// reported. A queued call wakes its attachment.
func (r *reporter) quiet(attachment *storagev1.VolumeAttachment, pv *corev1.PersistentVolume, err error) time.Duration {
	now := r.clock.Now()
	switch {
	case errors.Is(err, backend.Queued):
		return wake.WithoutAnswer
	case errors.Is(err, backend.InProgress):
		if now.Sub(r.unfinished.Since(attachment.Name, now)) >= quietUnfinished {
			r.warnings.record(attachment, pv, event.SlowAttachVolume, fmt.Sprintf("node %s, for longer than %s: %v", attachment.Spec.NodeName, quietUnfinished, err))
		}
		return RetryUnfinished
	case errors.Is(err, backend.NotReady) && now.Sub(r.notReady.Since(attachment.Name, now)) < quietNotReady:
		return RetryUnfinished
	case !errors.Is(err, backend.NotReady):
		// This is another kind of error, and an event has it. The next error that is usually
		// short gets its full time.
		r.notReady.Forget(attachment.Name)
	}
	return 0
}

// forget drops the memory of an attachment that is attached, or gone.
func (r *reporter) forget(of types.NamespacedName) {
	r.warnings.last.Forget(of)
	r.warnings.forced.Forget(of)
	r.notReady.Forget(of.Name)
	r.unfinished.Forget(of.Name)
	r.refused.Forget(of.Name)
}
