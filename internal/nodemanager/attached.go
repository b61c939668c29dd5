package nodemanager

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/nodemanager/inuse"
	"github.com/stowage-dev/stowage/internal/nodemanager/operations"
	"github.com/stowage-dev/stowage/internal/nodemanager/poddir"
	"github.com/stowage-dev/stowage/internal/nodemanager/resolve"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

// disks reports disks as in use, and finds their attachments.
type disks struct {
	nodeName   string
	served     inuse.Disks
	live       client.Reader
	tree       poddir.Tree
	inUse      *inuse.InUse
	operations *operations.Operations
}

// attachments finds how the disks of one pod are attached. It reads the node once for all of
// them, and only if one isn't mounted yet.
type attachments struct {
	*disks
	node     *corev1.Node
	err      error
	reported bool
}

// want registers all disks of a pod before the first of them is reported.
func (d *disks) want(ctx context.Context, at *pass) *attachments {
	for _, volume := range at.desired.Volumes {
		if resolved := volume.Resolved; resolved != nil && d.isDisk(ctx, resolved) {
			d.inUse.Want(at.pod.UID, volume.Volume.Name, inuse.NameInStatus(resolved.PersistentVolume))
		}
	}
	return &attachments{disks: d}
}

func (d *disks) isDisk(ctx context.Context, resolved *resolve.ResolvedVolume) bool {
	return d.served != nil && d.served.Serves(ctx, resolved.PersistentVolume)
}

// await finds the attachment of a disk, or returns that it isn't attached yet. The order keeps
// a disk that is about to be used from being detached. First, the disk is reported as in use,
// by a write that fails if volumesAttached changed since it was read. Then the attachment is
// read live.
func (a *attachments) await(ctx context.Context, resolved *resolve.ResolvedVolume) error {
	if !a.isDisk(ctx, resolved) || resolved.Attachment != nil {
		return nil
	}
	if !a.reported {
		a.node, a.err = a.inUse.Report(ctx)
		a.reported = true
	}
	if a.err != nil {
		return a.err
	}
	name := inuse.NameInStatus(resolved.PersistentVolume)
	if !inuse.IsAttached(a.node.Status.VolumesAttached, name) || !slices.Contains(a.node.Status.VolumesInUse, name) {
		return a.waitForAttachment(resolved)
	}
	var err error
	resolved.Attachment, err = a.findAttachment(ctx, resolved)
	return err
}

func (d *disks) waitForAttachment(resolved *resolve.ResolvedVolume) error {
	return resolve.WaitFor("waiting for volume %s to be attached to node %s", resolved.PersistentVolume.Name, d.nodeName)
}

// findAttachment finds the device of a disk by its VolumeAttachment.
func (d *disks) findAttachment(ctx context.Context, resolved *resolve.ResolvedVolume) (*volumes.Attachment, error) {
	object, err := inuse.FindAttachment(ctx, d.live, resolved.PersistentVolume, d.nodeName)
	if err != nil {
		return nil, err
	}
	if object != nil && object.DeletionTimestamp != nil {
		d.release(resolved)
	}
	if object == nil || !object.Status.Attached || object.DeletionTimestamp != nil {
		return nil, d.waitForAttachment(resolved)
	}
	found := volumes.AttachmentOf(object.Status.AttachmentMetadata)
	if resolved.PersistentVolume.Spec.CSI.Driver != stowagev1alpha1.GCEDriver {
		return &volumes.Attachment{Metadata: object.Status.AttachmentMetadata}, nil
	}
	if found == nil {
		return nil, fmt.Errorf("VolumeAttachment %s doesn't say by which name and serial the disk is found: "+
			"is it attached by a Stowage manager of this version? Delete the VolumeAttachment to have it attached again", object.Name)
	}
	return found, nil
}

// release takes a disk that is being detached out of volumesInUse. It would never be detached while
// the pod keeps it there, and the pod gets it only by a new attachment. A running mount may have
// found the disk before.
func (d *disks) release(resolved *resolve.ResolvedVolume) {
	pod := resolved.Pod.UID
	if !d.operations.IsRunningAt(d.tree.VolumeDir(pod, resolved.Location())) {
		d.inUse.Release(pod, resolved.Spec.Volume.Name)
	}
}
