package node

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/controllers/node/memory"
	"github.com/stowage-dev/stowage/internal/attach"
	"github.com/stowage-dev/stowage/internal/attachintent"
	"github.com/stowage-dev/stowage/internal/drivers"
	"github.com/stowage-dev/stowage/internal/effect"
	"github.com/stowage-dev/stowage/internal/wake"
	"github.com/stowage-dev/stowage/internal/wrap"
)

// attachments creates and deletes VolumeAttachments.
type attachments struct {
	client     client.Client
	live       client.Reader
	drivers    drivers.Drivers
	otherNodes *otherNodes
	reserved   *memory.Reservations
	created    memory.CreatedAttachments
	gone       memory.DeletedAttachments
	// prepared and deleted are shared with the reconciler of attachments.
	prepared, deleted *attachintent.Writes
}

func (r *attachments) create(ctx context.Context, s *snapshot, plan []attach.Step, again *requeue) error {
	var failures []error
	for _, step := range plan {
		if step.Action != attach.Create {
			continue
		}
		reserved, err := r.reserve(ctx, s, step.Volume)
		switch {
		case err != nil:
			failures = append(failures, err)
		case !reserved:
			again.in(wake.AfterContention)
		default:
			failures = append(failures, r.createOne(ctx, s, step.Volume))
		}
	}
	return errors.Join(failures...)
}

// reserve keeps a volume that one node at a time can have from all other nodes. The
// reservation excludes other workers. The live read of attachments after it excludes nodes
// that another manager chose. For drivers that Stowage serves the attach itself excludes them, later:
// see package order of volumeattachment.
func (r *attachments) reserve(ctx context.Context, s *snapshot, volume attach.Volume) (bool, error) {
	if !volume.SingleNode {
		return true, nil
	}
	if !r.reserved.Reserve(volume.Name, s.Name) {
		return false, nil
	}
	attaches, err := r.drivers.Attaches(ctx, volume.Driver)
	if err != nil {
		r.reserved.Release(volume.Name, s.Name)
		return false, err
	}
	if attaches {
		return true, nil
	}
	others, err := r.otherNodes.withLive(ctx, volume, s.Name)
	if err != nil || len(others) > 0 {
		r.reserved.Release(volume.Name, s.Name)
		return false, err
	}
	return true, nil
}

// createOne creates an attachment. It first reads the name, which the list may not show yet:
// the cache shows this process's own writes in reads by name.
func (r *attachments) createOne(ctx context.Context, s *snapshot, volume attach.Volume) error {
	name := volume.AttachmentName(s.Name)
	err := r.client.Get(ctx, client.ObjectKey{Name: name}, &storagev1.VolumeAttachment{}, client.UnsafeDisableDeepCopy)
	if !apierrors.IsNotFound(err) {
		return wrap.Error(err, "reading attachment %s", name)
	}
	object := &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       storagev1.VolumeAttachmentSpec{NodeName: s.Name, Attacher: volume.Driver, Source: volume.Source},
	}
	if err := r.prepare(ctx, s, object); err != nil {
		return err
	}
	err = r.prepared.By(object, func() error { return r.client.Create(ctx, object) })
	switch {
	case apierrors.IsAlreadyExists(err):
		// An earlier manager created it, and the cache has yet to show it.
		return nil
	case err != nil:
		return fmt.Errorf("creating the attachment of volume %s to node %s: %w", volume, s.Name, err)
	}
	r.created.Add(object.UID)
	effect.LogNow(ctx, effect.AttachmentCreated, object)
	return nil
}

// prepare adds to an attachment of a driver that Stowage serves what must be on it before the
// attach: that saves a write.
func (r *attachments) prepare(ctx context.Context, s *snapshot, object *storagev1.VolumeAttachment) error {
	name := object.Spec.Source.PersistentVolumeName
	if name == nil {
		return nil
	}
	if attaches, err := r.drivers.Attaches(ctx, object.Spec.Attacher); !attaches || err != nil {
		return err
	}
	pv := &corev1.PersistentVolume{}
	if err := r.client.Get(ctx, client.ObjectKey{Name: *name}, pv, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("reading volume %s: %w", *name, err)
	}
	attachintent.Prepare(object, pv, s.Node)
	return nil
}

// isAttachedLive reports, from a live read, whether an attachment is attached and not being
// deleted.
func (r *attachments) isAttachedLive(ctx context.Context, object *storagev1.VolumeAttachment) (bool, error) {
	current := &storagev1.VolumeAttachment{}
	if err := r.live.Get(ctx, client.ObjectKeyFromObject(object), current); err != nil {
		return false, wrap.Error(client.IgnoreNotFound(err), "reading attachment %s", object.Name)
	}
	return current.UID == object.UID && current.Status.Attached && current.DeletionTimestamp.IsZero(), nil
}

// delete deletes one attachment: the very object and version that the decision was based on.
// The driver's attacher detaches, and then removes its finalizer. marked is the node as this pass wrote it, if it did.
func (r *attachments) delete(ctx context.Context, s *snapshot, step attach.Step, marked *corev1.Node) error {
	object := step.Attachment
	released, err := r.released(ctx, s, step, marked)
	if err != nil {
		return err
	}
	attaches, err := r.drivers.Attaches(ctx, step.Volume.Driver)
	if err != nil {
		return err
	}
	remove := func() error {
		return r.client.Delete(ctx, object.DeepCopy(), client.Preconditions{UID: &object.UID, ResourceVersion: &object.ResourceVersion})
	}
	if attaches {
		err = r.deleted.OnceReleased(released, object, remove)
	} else {
		err = remove()
	}
	if err == nil {
		r.gone.Add(s.Name, object.UID, s.Now)
		effect.LogAttachmentDeleted(ctx, object, step.Forced && !attaches)
	}
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting the attachment of volume %s to node %s: %w", step.Volume, s.Name, err)
	}
	r.created.Remove(object.UID)
	return nil
}

var errInUse = errors.New("its status has changed, and it may use a volume that was to be detached")

// released returns the node once it has released a volume, and a conflict if it may touch one that the cache doesn't show
// on it: an earlier manager may have added the volume to volumesAttached a moment ago. If this
// pass removed the volume from volumesAttached, that write was the proof. By force, the node's
// status does not matter, and nothing is returned.
func (r *attachments) released(ctx context.Context, s *snapshot, step attach.Step, marked *corev1.Node) (*corev1.Node, error) {
	switch {
	case step.Forced:
		return nil, nil
	case step.Unmarked:
		return marked, nil
	}
	node := &corev1.Node{}
	err := r.live.Get(ctx, client.ObjectKey{Name: s.Name}, node)
	switch {
	case err != nil && !apierrors.IsNotFound(err):
		return nil, fmt.Errorf("reading node %s: %w", s.Name, err)
	case err != nil || node.UID != s.Node.UID || !attach.IsUnused(node, step.Volume.Name):
		return nil, apierrors.NewConflict(schema.GroupResource{Resource: "nodes"}, s.Name, errInUse)
	}
	return node, nil
}
