package node

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/internal/attach"
	"github.com/stowage-dev/stowage/internal/index"
	"github.com/stowage-dev/stowage/internal/wake"
)

// lookElsewhere finds the other nodes that have wanted volumes which one node at a time can
// have.
func (r *Reconciler) lookElsewhere(ctx context.Context, _ nodeSource, seen *nodeView) error {
	for _, volume := range seen.Desired {
		if !volume.SingleNode || seen.isAttached(volume) {
			continue
		}
		holders, err := r.holdersOf(ctx, volume)
		if err != nil {
			return err
		}
		if holders = without(holders, seen.Name); len(holders) > 0 {
			seen.OtherNodes[volume.Name] = holders
		}
	}
	return nil
}

// isAttached reports whether the node has a volume: then other nodes do not matter.
func (s *nodeView) isAttached(volume attach.Volume) bool {
	name := volume.AttachmentName(s.Name)
	return slices.ContainsFunc(s.Attachments, func(attachment attach.Attachment) bool {
		return attachment.Object.Name == name && attachment.Object.Status.Attached
	})
}

// holdersOf returns the nodes that have a volume, as far as the cache and this process know:
// by attachments, by volumesAttached, and by reservation.
func (r *Reconciler) holdersOf(ctx context.Context, volume attach.Volume) ([]attach.OtherNode, error) {
	storages, err := r.storagesOf(ctx, volume)
	if err != nil {
		return nil, err
	}
	var holders []attach.OtherNode
	for _, storage := range storages {
		attachments := &storagev1.VolumeAttachmentList{}
		if err := r.client.List(ctx, attachments, client.MatchingFields{index.AttachmentsByStorage: storage}, wake.Unhurried, client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("listing the attachments of volume %s: %w", volume, err)
		}
		for i := range attachments.Items {
			holders = append(holders, attach.OtherNode{Node: attachments.Items[i].Spec.NodeName, Attachment: &attachments.Items[i]})
		}
	}
	nodes := &corev1.NodeList{}
	if err := r.client.List(ctx, nodes, client.MatchingFields{index.NodesByVolume: string(volume.Name)}, wake.Unhurried, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the nodes that were told of volume %s: %w", volume, err)
	}
	for i := range nodes.Items {
		holders = append(holders, attach.OtherNode{Node: nodes.Items[i].Name})
	}
	if node, taken := r.reserved.Holder(volume.Name); taken {
		holders = append(holders, attach.OtherNode{Node: node})
	}
	return holders, nil
}

// storagesOf returns the index values of a volume's attachments: several PersistentVolumes may
// refer to the same storage.
func (r *Reconciler) storagesOf(ctx context.Context, volume attach.Volume) ([]string, error) {
	own := volume.Source.PersistentVolumeName
	storages := []string{string(volume.Name)}
	if own != nil {
		storages = append(storages, *own)
	}
	if !volume.NeedsAttachment() {
		return storages, nil
	}
	volumes := &corev1.PersistentVolumeList{}
	handle := volume.Key()
	if err := r.client.List(ctx, volumes, client.MatchingFields{index.VolumesByHandle: handle}, wake.Unhurried, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the volumes of handle %s: %w", handle, err)
	}
	for i := range volumes.Items {
		if own == nil || volumes.Items[i].Name != *own {
			storages = append(storages, volumes.Items[i].Name)
		}
	}
	return storages, nil
}

// holdersIndeed returns the other nodes that have a volume, read live: with a stale cache, two
// nodes could get it.
func (r *Reconciler) holdersIndeed(ctx context.Context, volume attach.Volume, node string) ([]attach.OtherNode, error) {
	if !volume.NeedsAttachment() {
		return r.attachedLive(ctx, volume, node)
	}
	storages, err := r.storagesOf(ctx, volume)
	if err != nil {
		return nil, err
	}
	all, err := r.shared.Attachments.Get(ctx, struct{}{})
	if err != nil {
		return nil, err
	}
	var holders []attach.OtherNode
	for _, storage := range storages {
		for _, object := range all.Volume[storage] {
			holders = append(holders, attach.OtherNode{Node: object.Spec.NodeName, Attachment: object})
		}
	}
	return without(holders, node), nil
}

// attachedLive returns the other nodes with a volume in volumesAttached that needs no
// attachment.
func (r *Reconciler) attachedLive(ctx context.Context, volume attach.Volume, node string) ([]attach.OtherNode, error) {
	nodes, err := r.allAttached.Get(ctx, struct{}{})
	if err != nil {
		return nil, err
	}
	var holders []attach.OtherNode
	for _, other := range nodes[volume.Name] {
		holders = append(holders, attach.OtherNode{Node: other})
	}
	return without(holders, node), nil
}

// volumesAttached maps each volume to the nodes that have it in volumesAttached.
type volumesAttached map[corev1.UniqueVolumeName][]string

func listVolumesAttached(ctx context.Context, live client.Reader) (volumesAttached, error) {
	nodes := &corev1.NodeList{}
	if err := live.List(ctx, nodes); err != nil {
		return nil, fmt.Errorf("listing the nodes: %w", err)
	}
	byVolume := volumesAttached{}
	for i := range nodes.Items {
		for _, attached := range nodes.Items[i].Status.VolumesAttached {
			byVolume[attached.Name] = append(byVolume[attached.Name], nodes.Items[i].Name)
		}
	}
	return byVolume, nil
}

func without(holders []attach.OtherNode, node string) []attach.OtherNode {
	return slices.DeleteFunc(holders, func(holder attach.OtherNode) bool { return holder.Node == node })
}
