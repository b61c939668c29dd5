package csi

import (
	"cmp"
	"context"
	"time"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stowage-dev/stowage/internal/effect"
	"github.com/stowage-dev/stowage/internal/nodemanager/drivers"
)

// NodeExpandVolume implements csispec.NodeServer.
func (n *Node) NodeExpandVolume(ctx context.Context, request *csispec.NodeExpandVolumeRequest) (*csispec.NodeExpandVolumeResponse, error) {
	grower, grows := n.driver.(drivers.Grower)
	if !grows {
		return nil, status.Errorf(codes.Unimplemented, "volumes of %s grow without the node", n.driver.Name())
	}
	id, path := request.GetVolumeId(), cmp.Or(request.GetStagingTargetPath(), request.GetVolumePath())
	err := cmp.Or(checkID(id), checkExisting("volume_path", request.GetVolumePath()), checkExisting(stagingField, path), checkRange(request.GetCapacityRange()))
	if err != nil {
		return nil, err
	}
	response := &csispec.NodeExpandVolumeResponse{}
	began := time.Now()
	err = n.alone(ctx, id, func(ctx context.Context) (err error) {
		response.CapacityBytes, err = grower.Grow(ctx, id, path)
		return err
	})
	if err != nil {
		return nil, err
	}
	// After a success the kubelet writes that the claim has the size that it asked for,
	// whatever size the response has.
	if wanted := request.GetCapacityRange().GetRequiredBytes(); response.GetCapacityBytes() < wanted {
		return nil, status.Errorf(codes.Unavailable, "volume %s has %d bytes on this node so far, and not %d: it is tried again",
			id, response.GetCapacityBytes(), wanted)
	}
	effect.LogValues(ctx, effect.Expanded, began, []any{effect.Volume, id})
	return response, nil
}

// checkRange returns what is wrong with a requested size; there may be none.
func checkRange(wanted *csispec.CapacityRange) error {
	required, limit := wanted.GetRequiredBytes(), wanted.GetLimitBytes()
	if required < 0 || limit < 0 || limit > 0 && limit < required {
		return status.Errorf(codes.InvalidArgument, "capacity_range makes no sense: at least %d bytes, at most %d", required, limit)
	}
	return nil
}
