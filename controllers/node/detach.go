package node

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/internal/attach"
)

var errNodeChanged = errors.New("it is not as it was when a volume was to leave it")

// remove deletes one attachment: the very object and version that the decision was based on.
// The driver's attacher detaches, and then removes its finalizer.
func (r *Reconciler) remove(ctx context.Context, seen *nodeView, step attach.Step) error {
	object := step.Attachment
	if err := r.confirmLeft(ctx, seen, step); err != nil {
		return err
	}
	err := r.client.Delete(ctx, object.DeepCopy(), client.Preconditions{UID: &object.UID, ResourceVersion: &object.ResourceVersion})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("asking for volume %s to be detached from node %s: %w", step.Volume, seen.Name, err)
	}
	r.made.Remove(object.UID)
	return nil
}

// confirmLeft returns a conflict if a node may touch a volume that the cache does not show on
// it. An earlier manager may have added the volume to volumesAttached a moment ago. If this
// pass removed the volume from volumesAttached, that write was the proof. By force, the node's
// status does not matter.
func (r *Reconciler) confirmLeft(ctx context.Context, seen *nodeView, step attach.Step) error {
	if step.Unmarked || step.Forced {
		return nil
	}
	node := &corev1.Node{}
	err := r.live.Get(ctx, client.ObjectKey{Name: seen.Name}, node)
	switch {
	case err != nil && !apierrors.IsNotFound(err):
		return fmt.Errorf("reading node %s: %w", seen.Name, err)
	case err != nil || node.UID != seen.Node.UID || !attach.IsUnused(node, step.Volume.Name):
		return apierrors.NewConflict(schema.GroupResource{Resource: "nodes"}, seen.Name, errNodeChanged)
	}
	return nil
}
