package csi

import (
	"context"
	"time"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stowage-dev/stowage/internal/keyed"
	"github.com/stowage-dev/stowage/internal/nodemanager/drivers"
)

// workPatience is how long the work for one call may take. Parts of it that wait for
// others have shorter limits. Checking a large file system takes its time.
const workPatience = time.Hour

// Node is the Node service of one driver. Its methods return the driver's errors as they
// are: NewGRPCServer gives them their codes.
type Node struct {
	csispec.UnimplementedNodeServer
	driver drivers.Driver
	inform Informer
	// locks has the volumes for which a call is under way.
	locks keyed.Locks
	sizes *sizes
	// within is the folder in which volumes are mounted.
	within string
}

// NewNode makes the service of a driver, whose volumes are mounted in the kubelet's folder.
func NewNode(driver drivers.Driver, inform Informer, kubeletDir string) *Node {
	return &Node{driver: driver, inform: inform, sizes: newSizes(), within: kubeletDir}
}

// alone does work for a volume while no other call does. A second call doesn't wait: the
// kubelet tries again, and a server that hangs would let calls pile up. Work and lock
// outlast the caller's deadline. Otherwise a check of a file system that takes longer than
// kubelets wait would never end.
func (n *Node) alone(ctx context.Context, volume string, work func(context.Context) error) error {
	release, acquired := n.locks.TryAcquire(volume)
	if !acquired {
		return status.Errorf(codes.Aborted, "another call for volume %s is under way: try again later", volume)
	}
	defer release()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), workPatience)
	defer cancel()
	return work(ctx)
}

// NodeGetCapabilities implements csispec.NodeServer.
func (n *Node) NodeGetCapabilities(context.Context, *csispec.NodeGetCapabilitiesRequest) (*csispec.NodeGetCapabilitiesResponse, error) {
	claimed := []csispec.NodeServiceCapability_RPC_Type{
		csispec.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME,
		csispec.NodeServiceCapability_RPC_GET_VOLUME_STATS,
		csispec.NodeServiceCapability_RPC_GET_VOLUME_HEALTH,
		csispec.NodeServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER,
	}
	if _, grows := n.driver.(drivers.Grower); grows {
		claimed = append(claimed, csispec.NodeServiceCapability_RPC_EXPAND_VOLUME)
	}
	response := &csispec.NodeGetCapabilitiesResponse{}
	for _, capability := range claimed {
		response.Capabilities = append(response.Capabilities, &csispec.NodeServiceCapability{
			Type: &csispec.NodeServiceCapability_Rpc{Rpc: &csispec.NodeServiceCapability_RPC{Type: capability}},
		})
	}
	return response, nil
}

// NodeGetInfo implements csispec.NodeServer.
func (n *Node) NodeGetInfo(ctx context.Context, _ *csispec.NodeGetInfoRequest) (*csispec.NodeGetInfoResponse, error) {
	info, err := n.inform(ctx)
	if err != nil {
		return nil, err
	}
	response := &csispec.NodeGetInfoResponse{NodeId: info.NodeID, MaxVolumesPerNode: info.MaxVolumes}
	if len(info.Topology) > 0 {
		response.AccessibleTopology = &csispec.Topology{Segments: info.Topology}
	}
	return response, nil
}
