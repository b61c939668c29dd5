package node

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/internal/attach"
	"github.com/stowage-dev/stowage/internal/attachintent"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/wake"
	"github.com/stowage-dev/stowage/internal/wrap"
)

func (r *Reconciler) create(ctx context.Context, seen *nodeView, plan []attach.Step, again *later) error {
	var failures []error
	for _, step := range plan {
		if step.Action != attach.Create {
			continue
		}
		free, err := r.reserve(ctx, seen, step.Volume)
		switch {
		case err != nil:
			failures = append(failures, err)
		case !free:
			again.in(wake.AfterContention)
		default:
			failures = append(failures, r.createAttachment(ctx, seen, step.Volume))
		}
	}
	return errors.Join(failures...)
}

// reserve keeps a volume that one node at a time can have from all other nodes. The
// reservation excludes other workers. The live read of attachments after it excludes nodes
// that another manager chose. For our own drivers the attach itself makes that read, later:
// see awaitTurn of package volumeattachment.
func (r *Reconciler) reserve(ctx context.Context, seen *nodeView, volume attach.Volume) (free bool, err error) {
	if !volume.SingleNode {
		return true, nil
	}
	if !r.reserved.Take(volume.Name, seen.Name) {
		return false, nil
	}
	if backend.NeedsAttach(volume.Driver) {
		return true, nil
	}
	holders, err := r.holdersIndeed(ctx, volume, seen.Name)
	if err != nil || len(holders) > 0 {
		r.reserved.Drop(volume.Name, seen.Name)
		return false, err
	}
	return true, nil
}

// createAttachment creates one. It first reads the name, which the list may not show yet: the
// cache shows this process's own writes in reads by name.
func (r *Reconciler) createAttachment(ctx context.Context, seen *nodeView, volume attach.Volume) error {
	name := volume.AttachmentName(seen.Name)
	err := r.client.Get(ctx, client.ObjectKey{Name: name}, &storagev1.VolumeAttachment{}, client.UnsafeDisableDeepCopy)
	if !apierrors.IsNotFound(err) {
		return wrap.Error(err, "reading attachment %s", name)
	}
	object := &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       storagev1.VolumeAttachmentSpec{NodeName: seen.Name, Attacher: volume.Driver, Source: volume.Source},
	}
	if err := r.prepare(ctx, seen, object); err != nil {
		return err
	}
	err = r.client.Create(ctx, object)
	switch {
	case apierrors.IsAlreadyExists(err):
		// An earlier manager made it, and the cache has yet to show it.
		return nil
	case err != nil:
		return fmt.Errorf("asking for volume %s to be attached to node %s: %w", volume, seen.Name, err)
	}
	r.made.Add(object.UID)
	return nil
}

// prepare adds to an attachment of one of our drivers what must be on it before the attach:
// that saves a write.
func (r *Reconciler) prepare(ctx context.Context, seen *nodeView, object *storagev1.VolumeAttachment) error {
	name := object.Spec.Source.PersistentVolumeName
	if name == nil || !backend.NeedsAttach(object.Spec.Attacher) {
		return nil
	}
	pv := &corev1.PersistentVolume{}
	if err := r.client.Get(ctx, client.ObjectKey{Name: *name}, pv, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("reading volume %s: %w", *name, err)
	}
	attachintent.Prepare(object, pv, seen.Node)
	return nil
}
