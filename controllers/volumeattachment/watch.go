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

	"github.com/stowage-dev/stowage/controllers/volumeattachment/order"
	"github.com/stowage-dev/stowage/internal/drivers"
	"github.com/stowage-dev/stowage/internal/index"
	"github.com/stowage-dev/stowage/internal/wake"
)

// ExceptOwnErrors passes attachments that changed in more than their errors. If its own error
// woke it, an attachment would call a failing backend again and again, without backoff. A
// resync, in which nothing differs, passes, and so does the removal of an error.
var ExceptOwnErrors = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	before, after := e.ObjectOld.(*storagev1.VolumeAttachment), e.ObjectNew.(*storagev1.VolumeAttachment)
	return before.ResourceVersion == after.ResourceVersion || !hasError(after) && hasError(before) ||
		!equality.Semantic.DeepEqual(before.Spec, after.Spec) ||
		!equality.Semantic.DeepEqual(withoutErrors(before.Status), withoutErrors(after.Status)) ||
		!equality.Semantic.DeepEqual(wake.WithoutVersion(before.ObjectMeta), wake.WithoutVersion(after.ObjectMeta))
}}

func hasError(attachment *storagev1.VolumeAttachment) bool {
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

// isUnsettled reports whether an attachment waits for something: it must be attached or detached.
func isUnsettled(attachment *storagev1.VolumeAttachment) bool {
	return !attachment.DeletionTimestamp.IsZero() || !attachment.Status.Attached
}

// watches finds the attachments that a change wakes.
type watches struct {
	client  client.Reader
	drivers drivers.Drivers
	refused *wake.Instants
}

// othersOfVolume wakes the attachments of the same storage as a deleted one: what refused them may be over, or soon.
func (w watches) othersOfVolume(ctx context.Context, object client.Object) []reconcile.Request {
	var requests []reconcile.Request
	for _, name := range index.AttachmentVolume(object) {
		for _, like := range order.VolumesLike(ctx, w.client, name) {
			requests = append(requests, w.unsettled(ctx, client.MatchingFields{index.AttachmentsByVolume: like})...)
		}
	}
	for _, request := range requests {
		w.refused.Forget(request.Name)
	}
	return requests
}

// attachmentsOfVolume wakes the attachments that wait for a volume.
func (w watches) attachmentsOfVolume(ctx context.Context, object client.Object) []reconcile.Request {
	return w.unsettled(ctx, client.MatchingFields{index.AttachmentsByVolume: object.GetName()})
}

// attachmentsOfNode wakes all attachments of a node, also the attached ones: the node may be
// another machine by now.
func (w watches) attachmentsOfNode(ctx context.Context, object client.Object) []reconcile.Request {
	return w.ours(ctx, func(*storagev1.VolumeAttachment) bool { return true }, client.MatchingFields{index.AttachmentsByNode: object.GetName()})
}

// attachmentsOfBackend wakes all attachments that wait: each checks whether it waits for this
// backend.
func (w watches) attachmentsOfBackend(ctx context.Context, _ client.Object) []reconcile.Request {
	return w.unsettled(ctx)
}

func (w watches) unsettled(ctx context.Context, options ...client.ListOption) []reconcile.Request {
	return w.ours(ctx, isUnsettled, options...)
}

func (w watches) ours(ctx context.Context, is func(*storagev1.VolumeAttachment) bool, options ...client.ListOption) []reconcile.Request {
	attachments := &storagev1.VolumeAttachmentList{}
	if err := w.client.List(ctx, attachments, append(options, wake.Unhurried, client.UnsafeDisableDeepCopy)...); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "listing attachments")
	}
	var requests []reconcile.Request
	for i := range attachments.Items {
		attachment := &attachments.Items[i]
		if !is(attachment) {
			continue
		}
		attaches, err := w.drivers.Attaches(ctx, attachment.Spec.Attacher)
		if err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "finding out whether a driver is served", "driver", attachment.Spec.Attacher)
		}
		if attaches || err != nil {
			requests = append(requests, wake.Request(attachment))
		}
	}
	return requests
}
