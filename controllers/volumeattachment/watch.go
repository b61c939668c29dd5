package volumeattachment

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/index"
	"github.com/stowage-dev/stowage/internal/wake"
)

// ExceptOwnWords lets pass attachments that changed in more than in why they fail: woken
// by its own words, an attachment would have a backend that fails asked again and again,
// without a pause. A resync, in which nothing differs, passes, and so does an error that
// somebody removed.
var ExceptOwnWords = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	before, after := e.ObjectOld.(*storagev1.VolumeAttachment), e.ObjectNew.(*storagev1.VolumeAttachment)
	return before.ResourceVersion == after.ResourceVersion || !saysWhyItFails(after) && saysWhyItFails(before) ||
		!equality.Semantic.DeepEqual(before.Spec, after.Spec) ||
		!equality.Semantic.DeepEqual(withoutErrors(before.Status), withoutErrors(after.Status)) ||
		!equality.Semantic.DeepEqual(wake.WithoutVersion(before.ObjectMeta), wake.WithoutVersion(after.ObjectMeta))
}}

func saysWhyItFails(attachment *storagev1.VolumeAttachment) bool {
	return attachment.Status.AttachError != nil || attachment.Status.DetachError != nil
}

func withoutErrors(status storagev1.VolumeAttachmentStatus) storagev1.VolumeAttachmentStatus {
	status.AttachError, status.DetachError = nil, nil
	return status
}

// onlyNewStates lets pass volumes that come, go, are deleted, or change their phase.
var onlyNewStates = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	before, after := e.ObjectOld.(*corev1.PersistentVolume), e.ObjectNew.(*corev1.PersistentVolume)
	return before.Status.Phase != after.Status.Phase || before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero()
}}

// isUnsettled tells of an attachment that waits for something: it is ours, and to be
// attached or detached.
func isUnsettled(attachment *storagev1.VolumeAttachment) bool {
	return backend.IsOurs(attachment.Spec.Attacher) && (!attachment.DeletionTimestamp.IsZero() || !attachment.Status.Attached)
}

// othersOfVolume wakes the attachments of the same storage as one that is gone.
func (r *Reconciler) othersOfVolume(ctx context.Context, object client.Object) []reconcile.Request {
	var requests []reconcile.Request
	for _, name := range index.AttachmentVolume(object) {
		for _, standing := range r.standingFor(ctx, name) {
			requests = append(requests, r.unsettled(ctx, client.MatchingFields{index.AttachmentsByVolume: standing})...)
		}
	}
	return requests
}

// standingFor are the names of the volume objects that stand for the same storage as
// one, itself included.
func (r *Reconciler) standingFor(ctx context.Context, name string) []string {
	pv, volumes := &corev1.PersistentVolume{}, &corev1.PersistentVolumeList{}
	names := []string{name}
	if r.client.Get(ctx, client.ObjectKey{Name: name}, pv, wake.Unhurried, client.UnsafeDisableDeepCopy) != nil || pv.Spec.CSI == nil {
		return names
	}
	if err := r.client.List(ctx, volumes, client.MatchingFields{index.VolumesByHandle: index.HandleOf(pv)[0]}, wake.Unhurried, client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "listing volumes", "volume", name)
	}
	for i := range volumes.Items {
		if volumes.Items[i].Name != name {
			names = append(names, volumes.Items[i].Name)
		}
	}
	return names
}

// attachmentsOfVolume wakes the attachments that wait for something of a volume.
func (r *Reconciler) attachmentsOfVolume(ctx context.Context, object client.Object) []reconcile.Request {
	return r.unsettled(ctx, client.MatchingFields{index.AttachmentsByVolume: object.GetName()})
}

// attachmentsOfNode wakes those that wait for something of a node, and those that are
// there: the node may be another machine by now.
func (r *Reconciler) attachmentsOfNode(ctx context.Context, object client.Object) []reconcile.Request {
	return r.ours(ctx, func(*storagev1.VolumeAttachment) bool { return true }, client.MatchingFields{index.AttachmentsByNode: object.GetName()})
}

// attachmentsOfBackend wakes all that wait: which of them wait for this backend is
// found out by looking.
func (r *Reconciler) attachmentsOfBackend(ctx context.Context, _ client.Object) []reconcile.Request {
	return r.unsettled(ctx)
}

func (r *Reconciler) unsettled(ctx context.Context, options ...client.ListOption) []reconcile.Request {
	return r.ours(ctx, isUnsettled, options...)
}

func (r *Reconciler) ours(ctx context.Context, is func(*storagev1.VolumeAttachment) bool, options ...client.ListOption) []reconcile.Request {
	attachments := &storagev1.VolumeAttachmentList{}
	if err := r.client.List(ctx, attachments, append(options, wake.Unhurried, client.UnsafeDisableDeepCopy)...); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "listing attachments")
	}
	var requests []reconcile.Request
	for i := range attachments.Items {
		if attachment := &attachments.Items[i]; backend.NeedsAttach(attachment.Spec.Attacher) && is(attachment) {
			requests = append(requests, wake.Request(attachment))
		}
	}
	return requests
}
