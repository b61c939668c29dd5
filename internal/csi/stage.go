package csi

import (
	"cmp"
	"context"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
)

// stagingField is the field of requests with the directory at which a volume is staged.
const stagingField = "staging_target_path"

// NodeStageVolume implements csispec.NodeServer.
func (n *Node) NodeStageVolume(ctx context.Context, request *csispec.NodeStageVolumeRequest) (*csispec.NodeStageVolumeResponse, error) {
	id, staging := request.GetVolumeId(), request.GetStagingTargetPath()
	if err := cmp.Or(checkID(id), n.checkClaimed(id), n.checkMountPath(stagingField, staging), checkCapability(request.GetVolumeCapability())); err != nil {
		return nil, err
	}
	spec, err := specOf(n.driver.Name(), request)
	if err != nil {
		return nil, err
	}
	err = n.alone(ctx, id, func(ctx context.Context) error { return n.driver.Stage(ctx, spec, staging) })
	return &csispec.NodeStageVolumeResponse{}, err
}

// NodeUnstageVolume implements csispec.NodeServer.
func (n *Node) NodeUnstageVolume(ctx context.Context, request *csispec.NodeUnstageVolumeRequest) (*csispec.NodeUnstageVolumeResponse, error) {
	id, staging := request.GetVolumeId(), request.GetStagingTargetPath()
	if err := cmp.Or(checkID(id), n.checkMountPath(stagingField, staging)); err != nil {
		return nil, err
	}
	err := n.alone(ctx, id, func(ctx context.Context) error { return n.driver.Unstage(ctx, id, staging) })
	return &csispec.NodeUnstageVolumeResponse{}, err
}
