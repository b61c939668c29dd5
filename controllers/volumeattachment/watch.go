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

// ExceptOwnWords passes attachments that changed in more than their errors. If its own error
// woke it, an attachment would call a failing backend again and again, without backoff. A
// resync, in which nothing differs, passes, and so does the removal of an error.
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

// onlyNewStates passes volumes that are created or deleted, or have a new phase.
var onlyNewStates = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	before, after := e.ObjectOld.(*corev1.PersistentVolume), e.ObjectNew.(*corev1.PersistentVolume)
	return before.Status.Phase != after.Status.Phase || before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero()
}}

// isUnsettled reports whether an attachment waits for something: it is ours, and must be
// attached or detached.
func isUnsettled(attachment *storagev1.VolumeAttachment) bool {
	return backend.IsOurs(attachment.Spec.Attacher) && (!attachment.DeletionTimestamp.IsZero() || !attachment.Status.Attached)
}

// othersOfVolume wakes the attachments of the same storage as a deleted one.
func (r *Reconciler) othersOfVolume(ctx context.Context, object client.Object) []reconcile.Request {
	var requests []reconcile.Request
	for _, name := range index.AttachmentVolume(object) {
		for _, standing := range r.standingFor(ctx, name) {
			requests = append(requests, r.unsettled(ctx, client.MatchingFields{index.AttachmentsByVolume: standing})...)
		}
	}
	return requests
}

// standingFor returns the names of the PersistentVolumes that refer to the same storage,
// including the given one.
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

// attachmentsOfVolume wakes the attachments that wait for a volume.
func (r *Reconciler) attachmentsOfVolume(ctx context.Context, object client.Object) []reconcile.Request {
	return r.unsettled(ctx, client.MatchingFields{index.AttachmentsByVolume: object.GetName()})
}

// attachmentsOfNode wakes all attachments of a node, also the attached ones: the node may be
// another machine by now.
func (r *Reconciler) attachmentsOfNode(ctx context.Context, object client.Object) []reconcile.Request {
	return r.ours(ctx, func(*storagev1.VolumeAttachment) bool { return true }, client.MatchingFields{index.AttachmentsByNode: object.GetName()})
}

// attachmentsOfBackend wakes all attachments that wait: each checks whether it waits for this
// backend.
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
