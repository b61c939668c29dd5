package node

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/internal/attach"
	"github.com/stowage-dev/stowage/internal/patch"
	"github.com/stowage-dev/stowage/internal/wake"
	"github.com/stowage-dev/stowage/internal/wrap"
)

// report writes volumesAttached of a node, once for all additions and removals. The write
// carries the resourceVersion that the plan was based on. If the node began to use a volume
// since, the write fails and the plan is made again.
func (r *Reconciler) report(ctx context.Context, seen *nodeView, plan []attach.Step, again *later) error {
	if seen.Node == nil {
		r.reported.Forget(seen.Name)
		return nil
	}
	if pause := r.pauseOf(seen, plan); pause > 0 {
		again.in(pause)
		return nil
	}
	confirmed, err := r.confirm(ctx, seen, plan, again)
	if err != nil {
		return err
	}
	attached, changed := attach.Reported(seen.Node, confirmed)
	if !changed {
		return nil
	}
	r.reported.Note(seen.Name, r.clock.Now())
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: seen.Name}}
	err = r.client.Status().Patch(ctx, node, volumesAttachedPatch(seen.Node, attached))
	return wrap.Error(err, "telling node %s which volumes are attached to it", seen.Name)
}

// confirm drops Report steps for volumes that the node does not have, or will soon lose. An
// earlier manager may have deleted the attachment, and the cache has yet to show it.
// Attachments that this process created need no live read.
func (r *Reconciler) confirm(ctx context.Context, seen *nodeView, plan []attach.Step, again *later) ([]attach.Step, error) {
	var confirmed []attach.Step
	for _, step := range plan {
		is, err := true, error(nil)
		switch {
		case step.Action != attach.Report:
		case step.Attachment == nil:
			is, err = r.reserve(ctx, seen, step.Volume)
		case !r.made.Has(step.Attachment.UID):
			is, err = r.isAttachedIndeed(ctx, step.Attachment)
		}
		if err != nil {
			return nil, err
		}
		if !is {
			again.in(wake.AfterContention)
			continue
		}
		confirmed = append(confirmed, step)
	}
	return confirmed, nil
}

// isAttachedIndeed reports, from a live read, whether an attachment is attached and not being
// deleted.
func (r *Reconciler) isAttachedIndeed(ctx context.Context, object *storagev1.VolumeAttachment) (bool, error) {
	current := &storagev1.VolumeAttachment{}
	err := r.live.Get(ctx, client.ObjectKeyFromObject(object), current)
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("reading attachment %s: %w", object.Name, err)
	}
	return current.UID == object.UID && current.Status.Attached && current.DeletionTimestamp.IsZero(), nil
}

// volumesAttachedPatch replaces the whole list, as every patch of this list does, in the
// version of the node that the new list was made from.
func volumesAttachedPatch(node *corev1.Node, attached []corev1.AttachedVolume) client.Patch {
	type status struct {
		VolumesAttached []corev1.AttachedVolume `json:"volumesAttached"`
	}
	return patch.Written{Kind: types.MergePatchType, Body: struct {
		Metadata patch.Metadata `json:"metadata"`
		Status   status         `json:"status"`
	}{patch.Metadata{ResourceVersion: node.ResourceVersion}, status{attached}}}
}
