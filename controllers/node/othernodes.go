package node

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/controllers/node/memory"
	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/internal/attach"
	"github.com/stowage-dev/stowage/internal/index"
	"github.com/stowage-dev/stowage/internal/liveread"
	"github.com/stowage-dev/stowage/internal/sharedread"
	"github.com/stowage-dev/stowage/internal/wake"
)

// otherNodes finds the nodes that have a volume.
type otherNodes struct {
	client client.Reader
	shared liveread.Reads
	// volumesAttached is a live read of all nodes', shared by concurrent reconciles.
	volumesAttached *sharedread.Reads[struct{}, nodesByVolume]
	reserved        *memory.Reservations
}

func newOtherNodes(deps reconciler.Dependencies, reserved *memory.Reservations) *otherNodes {
	return &otherNodes{
		client: deps.Client, shared: deps.Reads, reserved: reserved,
		volumesAttached: sharedread.New(func(ctx context.Context, _ struct{}) (nodesByVolume, error) {
			return listVolumesAttached(ctx, deps.Live)
		}),
	}
}

// with returns the other nodes that have a volume, as far as the cache and this process know:
// by attachments, by volumesAttached, and by reservation.
func (r *otherNodes) with(ctx context.Context, volume attach.Volume, node string) ([]attach.OtherNode, error) {
	storages, err := r.storagesOf(ctx, volume)
	if err != nil {
		return nil, err
	}
	var others []attach.OtherNode
	for _, storage := range storages {
		attachments := &storagev1.VolumeAttachmentList{}
		if err := r.client.List(ctx, attachments, client.MatchingFields{index.AttachmentsByStorage: storage}, wake.Unhurried, client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("listing the attachments of volume %s: %w", volume, err)
		}
		for i := range attachments.Items {
			others = append(others, attach.OtherNode{Node: attachments.Items[i].Spec.NodeName, Attachment: &attachments.Items[i]})
		}
	}
	nodes := &corev1.NodeList{}
	if err := r.client.List(ctx, nodes, client.MatchingFields{index.NodesByVolume: string(volume.Name)}, wake.Unhurried, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the nodes with volume %s in volumesAttached: %w", volume, err)
	}
	for i := range nodes.Items {
		others = append(others, attach.OtherNode{Node: nodes.Items[i].Name})
	}
	if other, reserved := r.reserved.NodeOf(volume.Name); reserved {
		others = append(others, attach.OtherNode{Node: other})
	}
	return without(others, node), nil
}

// storagesOf returns the index values of a volume's attachments: several PersistentVolumes may
// refer to the same storage.
func (r *otherNodes) storagesOf(ctx context.Context, volume attach.Volume) ([]string, error) {
	own := volume.Source.PersistentVolumeName
	storages := []string{string(volume.Name)}
	if own != nil {
		storages = append(storages, *own)
	}
	if !volume.NeedsAttachment() {
		return storages, nil
	}
	volumes, err := index.VolumesOf(ctx, r.client, volume.Key(), wake.Unhurried)
	for i := range volumes {
		if own == nil || volumes[i].Name != *own {
			storages = append(storages, volumes[i].Name)
		}
	}
	return storages, err
}

// withLive returns the other nodes that have a volume, read live: with a stale cache, two
// nodes could get it.
func (r *otherNodes) withLive(ctx context.Context, volume attach.Volume, node string) ([]attach.OtherNode, error) {
	if !volume.NeedsAttachment() {
		return r.withVolumesAttached(ctx, volume, node)
	}
	storages, err := r.storagesOf(ctx, volume)
	if err != nil {
		return nil, err
	}
	all, err := r.shared.Attachments.Get(ctx, struct{}{})
	if err != nil {
		return nil, err
	}
	var others []attach.OtherNode
	for _, storage := range storages {
		for _, object := range all.Volume[storage] {
			others = append(others, attach.OtherNode{Node: object.Spec.NodeName, Attachment: object})
		}
	}
	return without(others, node), nil
}

// withVolumesAttached returns the other nodes with a volume in volumesAttached that needs no
// attachment.
func (r *otherNodes) withVolumesAttached(ctx context.Context, volume attach.Volume, node string) ([]attach.OtherNode, error) {
	nodes, err := r.volumesAttached.Get(ctx, struct{}{})
	if err != nil {
		return nil, err
	}
	var others []attach.OtherNode
	for _, other := range nodes[volume.Name] {
		others = append(others, attach.OtherNode{Node: other})
	}
	return without(others, node), nil
}

// nodesByVolume maps each volume to the nodes that have it in volumesAttached.
type nodesByVolume map[corev1.UniqueVolumeName][]string

func listVolumesAttached(ctx context.Context, live client.Reader) (nodesByVolume, error) {
	nodes := &corev1.NodeList{}
	if err := live.List(ctx, nodes); err != nil {
		return nil, fmt.Errorf("listing the nodes: %w", err)
	}
	byVolume := nodesByVolume{}
	for i := range nodes.Items {
		for _, attached := range nodes.Items[i].Status.VolumesAttached {
			byVolume[attached.Name] = append(byVolume[attached.Name], nodes.Items[i].Name)
		}
	}
	return byVolume, nil
}

func without(others []attach.OtherNode, node string) []attach.OtherNode {
	return slices.DeleteFunc(others, func(other attach.OtherNode) bool { return other.Node == node })
}
