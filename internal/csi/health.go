package csi

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stowage-dev/stowage/internal/message"
	"github.com/stowage-dev/stowage/internal/mount/remote"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

// NodeGetVolumeHealth implements csispec.NodeServer. Like NodeGetVolumeStats, it
// takes no volume's lock.
func (n *Node) NodeGetVolumeHealth(ctx context.Context, request *csispec.NodeGetVolumeHealthRequest) (*csispec.NodeGetVolumeHealthResponse, error) {
	id := request.GetVolumeId()
	if err := checkID(id); err != nil {
		return nil, err
	}
	// What a pod sees says more than what it is made from. Where the request has neither
	// path, the driver finds the volume by its id.
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

// ailment is an error of a volume, as the interface has it.
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

// NodeGetVolumeStats implements csispec.NodeServer. Kubelets call it all the time: it takes
// no volume's lock, so that neither it nor another call for the volume is refused.
func (n *Node) NodeGetVolumeStats(ctx context.Context, request *csispec.NodeGetVolumeStatsRequest) (*csispec.NodeGetVolumeStatsResponse, error) {
	id, path := request.GetVolumeId(), request.GetVolumePath()
	if err := cmp.Or(checkID(id), checkExisting("volume_path", path)); err != nil {
		return nil, err
	}
	// Where the volume isn't, the numbers would be those of the node's own disk. Other errors
	// of Check are NodeGetVolumeHealth's to report.
	if err := n.driver.Check(ctx, id, path); errors.Is(err, volumes.ErrNotFound) || errors.Is(err, volumes.ErrNotStaged) {
		return nil, status.Error(codes.NotFound, err.Error())
	}
	found, err := n.sizes.ask(ctx, filepath.Clean(path))
	if errors.Is(err, os.ErrNotExist) {
		return nil, status.Errorf(codes.NotFound, "nothing is at volume_path %s", path)
	}
	if err != nil {
		return nil, err
	}
	return &csispec.NodeGetVolumeStatsResponse{Usage: found.usage()}, nil
}
