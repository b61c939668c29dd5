package node

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/internal/attach"
	"github.com/stowage-dev/stowage/internal/patch"
	"github.com/stowage-dev/stowage/internal/wake"
	"github.com/stowage-dev/stowage/internal/wrap"
)

const (
	// writePause is the pause after a write of volumesAttached while more attachments are in
	// flight: one write then covers all of them.
	writePause = 200 * time.Millisecond
	// inFlightTime is how long an attachment counts as in flight. A slower one delays nothing.
	inFlightTime = 5 * time.Second
)

// marker writes volumesAttached of nodes.
type marker struct {
	client      client.Client
	clock       clock.PassiveClock
	attachments *attachments
	// written is when volumesAttached of each node was last written.
	written wake.Instants
}

// mark writes volumesAttached of a node, once for all additions and removals. The write
// carries the resourceVersion that the plan was based on. If the node began to use a volume
// since, the write fails and the plan is made again. It returns the node as the write left it; nil without a write.
func (r *marker) mark(ctx context.Context, s *snapshot, plan []attach.Step, again *requeue) (*corev1.Node, error) {
	if s.Node == nil {
		r.written.Forget(s.Name)
		return nil, nil
	}
	if pause := r.pauseOf(s, plan); pause > 0 {
		again.in(pause)
		return nil, nil
	}
	confirmed, err := r.confirm(ctx, s, plan, again)
	if err != nil {
		return nil, err
	}
	attached, changed := attach.VolumesAttached(s.Node, confirmed)
	if !changed {
		return nil, nil
	}
	r.written.Note(s.Name, r.clock.Now())
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: s.Name}}
	err = r.client.Status().Patch(ctx, node, volumesAttachedPatch(s.Node, attached))
	return node, wrap.Error(err, "writing volumesAttached of node %s", s.Name)
}

// pauseOf returns how long to wait before volumesAttached is written; 0 means now. A removal
// from it is never delayed.
func (r *marker) pauseOf(s *snapshot, plan []attach.Step) time.Duration {
	left := r.written.Last(s.Name).Add(writePause).Sub(s.Now)
	if left <= 0 || left > writePause || !isMoreInFlight(s, plan) {
		return 0
	}
	for _, step := range plan {
		if step.Action == attach.UnmarkAttached || step.Action == attach.Delete {
			return 0
		}
	}
	return left
}

func isMoreInFlight(s *snapshot, plan []attach.Step) bool {
	for _, step := range plan {
		if step.Action == attach.Create {
			return true
		}
	}
	for _, attachment := range s.Attachments {
		object := attachment.Object
		if !object.Status.Attached && object.Status.AttachError == nil && object.DeletionTimestamp.IsZero() &&
			s.Now.Sub(object.CreationTimestamp.Time) < inFlightTime {
			return true
		}
	}
	return false
}

// confirm drops MarkAttached steps for volumes that the node does not have, or will soon lose. An
// earlier manager may have deleted the attachment, and the cache has yet to show it.
// Attachments that this process created need no live read.
func (r *marker) confirm(ctx context.Context, s *snapshot, plan []attach.Step, again *requeue) ([]attach.Step, error) {
	var confirmed []attach.Step
	for _, step := range plan {
		is, err := true, error(nil)
		switch {
		case step.Action != attach.MarkAttached:
		case step.Attachment == nil:
			is, err = r.attachments.reserve(ctx, s, step.Volume)
		case !r.attachments.created.Has(step.Attachment.UID):
			is, err = r.attachments.isAttachedLive(ctx, step.Attachment)
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
