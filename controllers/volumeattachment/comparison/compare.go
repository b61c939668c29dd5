// Package comparison compares what backends report as attached with the VolumeAttachments. It
// sets the attachments of volumes that were detached elsewhere to detached. It detaches
// dangling ones, which have no VolumeAttachment, after live reads and a waiting time.
package comparison

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/controllers/volumeattachment"
	"github.com/stowage-dev/stowage/internal/attachintent"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/effect"
	"github.com/stowage-dev/stowage/internal/event"
	"github.com/stowage-dev/stowage/internal/patch"
	"github.com/stowage-dev/stowage/internal/wake"
	"github.com/stowage-dev/stowage/internal/wrap"
)

const (
	// comparisons is the number of concurrent reconciles.
	comparisons = 4
	// attachmentCheckTimeout is how long a backend has to list its attachments.
	attachmentCheckTimeout = time.Minute
)

// Reconcile compares the attachments of one backend, and repeats that after the interval.
func (r *Comparer) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	object := &stowagev1alpha1.StorageBackend{}
	if err := r.client.Get(ctx, request.NamespacedName, object); err != nil {
		if apierrors.IsNotFound(err) {
			r.failed.Forget(request.NamespacedName)
			r.markSeen(request.Name, nil)
			r.markMissing(request.Name, nil)
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	opened, err := r.storage.Open(object, func() {})
	if err != nil {
		// The condition Accepted shows it, and a new spec wakes.
		return ctrl.Result{}, nil //nolint:nilerr // the reconciler that probes reports it
	}
	list := r.listOf(object, opened)
	if list == nil {
		return ctrl.Result{}, nil
	}
	if err := r.compare(ctx, object, list); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: r.interval}, nil
}

// listing is what a backend lists as attached, and which recorded attachments are missing there.
type listing func(ctx context.Context, recorded []recordedAttachment) (listed []backend.Attached, missing []recordedAttachment, err error)

// listOf returns how a backend lists what is attached; nil where it doesn't.
func (r *Comparer) listOf(object *stowagev1alpha1.StorageBackend, opened backend.Backend) listing {
	if lister, can := backend.As[backend.AttachmentLister](opened); can {
		return func(ctx context.Context, recorded []recordedAttachment) ([]backend.Attached, []recordedAttachment, error) {
			listed, err := lister.Attachments(ctx)
			if err != nil {
				return nil, nil, err
			}
			return listed, slices.DeleteFunc(recorded, func(missing recordedAttachment) bool {
				return isListed(listed, missing) || r.mayBeAttached(ctx, object, missing)
			}), nil
		}
	}
	if lister, can := backend.As[backend.PublicationLister](opened); can {
		return func(ctx context.Context, recorded []recordedAttachment) ([]backend.Attached, []recordedAttachment, error) {
			return r.published(ctx, object, lister, recorded)
		}
	}
	return nil
}

// compare finds the differences. It reads the recorded attachments before the call of the backend,
// and the requested ones after it. A change between the two lists is in neither difference.
func (r *Comparer) compare(ctx context.Context, object *stowagev1alpha1.StorageBackend, list listing) error {
	recorded, err := r.recorded(ctx, object)
	if err != nil {
		return err
	}
	bounded, cancel := context.WithTimeout(ctx, attachmentCheckTimeout)
	defer cancel()
	listed, missing, err := list(bounded, recorded)
	key := client.ObjectKeyFromObject(object)
	if err != nil {
		if r.failed.IsNew(key, err.Error()) {
			r.events.Eventf(object, nil, corev1.EventTypeWarning, event.AttachmentCheckFailed, "Compare", "listing what is attached: %v", err)
		}
		return nil
	}
	r.failed.Forget(key)
	for _, detached := range missing {
		if err := r.repair(ctx, detached); err != nil {
			return err
		}
	}
	return r.detachDangling(ctx, object, listed)
}

// mayBeAttached queries the backend by name for a volume that its list does not show: the
// labels that the list uses may have been replaced. On an error, the next comparison repeats
// it.
func (r *Comparer) mayBeAttached(ctx context.Context, object *stowagev1alpha1.StorageBackend, missing recordedAttachment) bool {
	opened, err := r.storage.Direct(object)
	if err != nil {
		return true
	}
	attacher, err := attachintent.AttacherOf(opened, object.Name)
	if err != nil {
		return true
	}
	node := attachintent.MachineOf(missing.VolumeAttachment, missing.intent)
	is, err := attacher.IsAttached(ctx, missing.intent.Volume, node)
	if err != nil {
		ctrl.LoggerFrom(ctx).V(1).Info("it is unknown whether the volume is attached", "attachment", missing.Name, "why", err.Error())
	}
	return is || err != nil
}

// repair clears status.attached: the reconciler of the attachment attaches it again. Any
// change since the attachment was read prevents this write.
func (r *Comparer) repair(ctx context.Context, missing recordedAttachment) error {
	current := &storagev1.VolumeAttachment{}
	if err := r.live.Get(ctx, client.ObjectKeyFromObject(missing), current); err != nil {
		return wrap.Error(client.IgnoreNotFound(err), "reading attachment %s", missing.Name)
	}
	if current.ResourceVersion != missing.ResourceVersion {
		return nil
	}
	const message = "the volume was detached outside of Stowage, and is attached again"
	before := current.DeepCopy()
	current.Status.Attached = false
	current.Status.AttachError = &storagev1.VolumeError{Time: volumeattachment.NewVolumeError(backend.Conflict, r.clock.Now()).Time, Message: message}
	err := r.client.Status().Patch(ctx, current, patch.Fenced(before))
	if err != nil {
		return wrap.Error(client.IgnoreNotFound(err), "setting attachment %s to detached", missing.Name)
	}
	r.events.Eventf(current, nil, corev1.EventTypeWarning, event.VolumeDetachedElsewhere, "Compare", "node %s: %s", current.Spec.NodeName, message)
	if missing.pv != nil {
		event.Unlogged(r.events).Eventf(missing.pv, nil, corev1.EventTypeWarning, event.VolumeDetachedElsewhere, "Compare", "node %s: %s", current.Spec.NodeName, message)
	}
	return nil
}

// SetupWithManager watches backends. Everything else is read when a comparison is due.
func (r *Comparer) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("volumeattachment-compare").
		For(&stowagev1alpha1.StorageBackend{}, wake.OnlyNewBackends()).
		WithOptions(controller.Options{MaxConcurrentReconciles: comparisons}).
		Complete(effect.Reported[ctrl.Request](r))
}
