package nodemanager

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/internal/nodemanager/inuse"
	"github.com/stowage-dev/stowage/internal/nodemanager/resolve"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
	"github.com/stowage-dev/stowage/internal/volume"
)

// attachments tells, in one pass over a pod, how its disks are found on the node. It
// asks for the node once for all of them, and only if one isn't mounted yet.
type attachments struct {
	*Reconciler
	node  *corev1.Node
	err   error
	asked bool
}

// want notes which of a pod's volumes are disks, before anything is asked for any.
func (r *Reconciler) want(pod *corev1.Pod, wanted *DesiredPod) *attachments {
	for _, volume := range wanted.Volumes {
		if resolved := volume.Resolved; resolved != nil && r.isDisk(resolved) {
			r.inUse.Want(pod.UID, volume.Volume.Name, inuse.NameInStatus(resolved.PersistentVolume))
		}
	}
	return &attachments{Reconciler: r}
}

func (r *Reconciler) isDisk(resolved *resolve.ResolvedVolume) bool {
	return r.Disks != nil && r.Disks.Serves(resolved.PersistentVolume)
}

// await finds out how a disk is found, or says that it isn't attached yet. The order is
// what keeps a disk from being detached when it is about to be used: it is said to be in
// use, by a write that fails if what is attached changed since it was read; then the
// attachment is read from the API server.
func (a *attachments) await(ctx context.Context, resolved *resolve.ResolvedVolume) error {
	if !a.isDisk(resolved) || resolved.Attachment != nil {
		return nil
	}
	node, err := a.readNode(ctx)
	if err != nil {
		return err
	}
	name := inuse.NameInStatus(resolved.PersistentVolume)
	if !inuse.IsAttached(node.Status.VolumesAttached, name) || !slices.Contains(node.Status.VolumesInUse, name) {
		return a.waitForAttachment(resolved)
	}
	resolved.Attachment, err = a.findAttachment(ctx, resolved)
	return err
}

func (a *attachments) readNode(ctx context.Context) (*corev1.Node, error) {
	if !a.asked {
		a.node, a.err = a.inUse.Report(ctx)
		a.asked = true
	}
	return a.node, a.err
}

func (a *attachments) waitForAttachment(resolved *resolve.ResolvedVolume) error {
	return resolve.WaitFor("waiting for volume %s to be attached to node %s", resolved.PersistentVolume.Name, a.NodeName)
}

// findAttachment reads what the manager wrote of an attachment.
func (a *attachments) findAttachment(ctx context.Context, resolved *resolve.ResolvedVolume) (*volumes.Attachment, error) {
	source := resolved.PersistentVolume.Spec.CSI
	object, name := &storagev1.VolumeAttachment{}, volume.AttachmentName(source.Driver, source.VolumeHandle, a.NodeName)
	err := a.Live.Get(ctx, client.ObjectKey{Name: name}, object)
	// Forbidden: the authorizer learns whose an attachment is a moment later.
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return nil, a.waitForAttachment(resolved)
	}
	if err != nil {
		return nil, fmt.Errorf("reading how volume %s is attached: %w", resolved.PersistentVolume.Name, err)
	}
	if err := inuse.CheckAttachment(object, resolved.PersistentVolume, a.NodeName); err != nil {
		return nil, err
	}
	if object.DeletionTimestamp != nil {
		a.renounce(resolved)
	}
	if !object.Status.Attached || object.DeletionTimestamp != nil {
		return nil, a.waitForAttachment(resolved)
	}
	found := volumes.AttachmentOf(object.Status.AttachmentMetadata)
	if found == nil {
		return nil, fmt.Errorf("VolumeAttachment %s doesn't say by which name and serial the disk is found: "+
			"is it attached by a Stowage manager of this version? Delete the VolumeAttachment to have it attached anew", name)
	}
	return found, nil
}

// renounce lets a disk go that is on its way out: it can be attached for this pod only
// after that, and would never go while the pod says that it uses it. A mount that runs
// may have found it before.
func (a *attachments) renounce(resolved *resolve.ResolvedVolume) {
	pod := resolved.Pod.UID
	if !a.operations.IsRunningAt(a.Tree.VolumeDir(pod, resolved.Location())) {
		a.inUse.Renounce(pod, resolved.Spec.Volume.Name)
	}
}
