package volumeattachment

import (
	"context"
	"slices"

	storagev1 "k8s.io/api/storage/v1"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/stowage-dev/stowage/internal/attach"
	"github.com/stowage-dev/stowage/internal/attachintent"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/index"
	"github.com/stowage-dev/stowage/internal/volume"
)

// awaitTurn confirms, live, that the attachment is still wanted and prepared. If one node at a
// time can have the volume, no older attachment may be left. All readers agree on which is
// older, so of two leaders, and of two nodes, one attaches.
func (r *Reconciler) awaitTurn(ctx context.Context, a *attaching) error {
	all, err := r.shared.Attachments.Get(ctx, struct{}{})
	if err != nil {
		return err
	}
	names := r.standingFor(ctx, a.pv.Name)
	if !slices.ContainsFunc(all.Volume[a.pv.Name], a.isStillWanted) {
		a.over = true
		return nil
	}
	if err := a.comesAfterGoogle(all); err != nil || volume.AllowsMultiAttach(a.volume.Spec.AccessModes) {
		return err
	}
	for _, name := range names {
		for _, other := range all.Volume[name] {
			if err := a.comesAfter(other); err != nil {
				return err
			}
		}
	}
	for _, other := range all.Handle[index.HandleOf(a.volume)[0]] {
		if err := a.comesAfter(other); err != nil {
			return err
		}
	}
	return nil
}

// isStillWanted reports whether a live object is the attachment, and not being deleted.
func (a *attaching) isStillWanted(current *storagev1.VolumeAttachment) bool {
	return current.UID == a.attachment.UID && current.DeletionTimestamp.IsZero() &&
		controllerutil.ContainsFinalizer(current, attachintent.Finalizer(current.Spec.Attacher))
}

// comesAfter returns an error if another attachment of the storage came first. It is older, or
// already attached, which counts even if both were created in the same second.
func (a *attaching) comesAfter(other *storagev1.VolumeAttachment) error {
	if other.UID == a.attachment.UID || other.Spec.Attacher != a.attachment.Spec.Attacher ||
		!other.Status.Attached && attach.Older(other, a.attachment) > 0 {
		return nil
	}
	state := "is attached to"
	if !other.DeletionTimestamp.IsZero() {
		state = "is being detached from"
	}
	return backend.Conflict.Errorf("volume %s %s node %s, and one node at a time can have it (VolumeAttachment %s)",
		a.pv.Name, state, other.Spec.NodeName, other.Name)
}
