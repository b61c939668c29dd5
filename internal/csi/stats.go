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

	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
)

// NodeGetVolumeStats implements csispec.NodeServer. It isn't kept from asking by another
// call for the volume, and never keeps one waiting: kubelets ask all the time.
func (n *Node) NodeGetVolumeStats(ctx context.Context, request *csispec.NodeGetVolumeStatsRequest) (*csispec.NodeGetVolumeStatsResponse, error) {
	id, path := request.GetVolumeId(), request.GetVolumePath()
	if err := cmp.Or(checkID(id), checkExisting("volume_path", path)); err != nil {
		return nil, err
	}
	// Where the volume isn't, the numbers would be those of the node's own disk. What else
	// ails it is told by NodeGetVolumeHealth.
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
