package csi

import (
	"cmp"
	"context"
	"errors"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stowage-dev/stowage/internal/message"
	"github.com/stowage-dev/stowage/internal/mount/remote"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

// NodeGetVolumeHealth implements csispec.NodeServer. Like NodeGetVolumeStats, it waits
// for nobody.
func (n *Node) NodeGetVolumeHealth(ctx context.Context, request *csispec.NodeGetVolumeHealthRequest) (*csispec.NodeGetVolumeHealthResponse, error) {
	id := request.GetVolumeId()
	if err := checkID(id); err != nil {
		return nil, err
	}
	// What a pod sees says more than what it is made from; where neither is named, the
	// driver knows the place.
	path := cmp.Or(request.GetVolumePublishPath(), request.GetStagingTargetPath())
	if path != "" {
		if err := checkExisting("volume_publish_path", path); err != nil {
			return nil, err
		}
	}
	health := &csispec.VolumeHealth{VolumeId: id}
	ails := n.driver.Check(ctx, id, path)
	switch {
	case errors.Is(ails, volumes.ErrNotFound), errors.Is(ails, volumes.ErrNotStaged):
		return nil, status.Error(codes.NotFound, ails.Error())
	case ails != nil && ctx.Err() != nil:
		return nil, ctx.Err()
	case ails != nil:
		health.HealthStatuses = []*csispec.VolumeHealth_VolumeHealthEntry{ailment(ails)}
	}
	return &csispec.NodeGetVolumeHealthResponse{VolumeHealth: health}, nil
}

// ailment is what ails a volume, in the words of the interface.
func ailment(err error) *csispec.VolumeHealth_VolumeHealthEntry {
	kind, reason := csispec.VolumeHealthErrorType_INACCESSIBLE, "Abnormal"
	switch {
	case errors.Is(err, volumes.ErrGone):
		reason = "DiskGone"
	case errors.Is(err, remote.ErrSilent), errors.Is(err, remote.ErrBusy), errors.Is(err, remote.ErrDetached):
		reason = "ServerSilent"
	case errors.Is(err, volumes.ErrOtherVolume):
		reason = "OtherVolume"
	case errors.Is(err, volumes.ErrOverLimit):
		kind, reason = csispec.VolumeHealthErrorType_DEGRADED, "OverLimit"
	}
	return &csispec.VolumeHealth_VolumeHealthEntry{Status: kind, Reason: reason, Message: message.Cut(err.Error(), message.MaxStatus)}
}
