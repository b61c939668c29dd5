package sanity_test

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
)

// pause is how long it waits before it repeats a call that goes on.
const pause = 10 * time.Millisecond

// controllerOptions are what a controller serves.
type controllerOptions struct {
	// Driver is the CSI driver's name, Name that of the StorageBackend.
	Driver, Name string
	// Backend makes the volumes.
	Backend backend.Backend
	// Node reads a Node object; nil where there is none of that name.
	Node func(ctx context.Context, name string) (*corev1.Node, error)
	// ClaimOf returns the UID of the claim that a name stands for; nil: each name has a claim of its own.
	ClaimOf func(name string) types.UID
	// Mutable: volumes can have what a VolumeAttributesClass says, and change it.
	Mutable bool
	// Patience is how long a call may go on.
	Patience time.Duration
}

// controller is a driver's Controller and Identity services, over the contract of Stowage's
// backends: csi-sanity needs them for what kube-controller-manager and Stowage's manager do
// with claims and volume objects. What Kubernetes keeps in objects (a volume's claim, its
// attributes, where it is attached) it keeps in memory.
type controller struct {
	csi.UnimplementedControllerServer
	csi.UnimplementedIdentityServer
	controllerOptions

	mu sync.Mutex
	// volumes are those that were made, by their handles.
	volumes map[string]*volume
	// snapshots are those that were made, by their handles.
	snapshots map[string]snapshot
	// claims are the UIDs of the claims that volumes are made for, by the volumes' names, and of
	// the VolumeSnapshots that snapshots are made for.
	claims map[string]types.UID
}

// volume is what Kubernetes would keep of a volume.
type volume struct {
	request backend.Request
	made    *backend.Volume
	// source is the id of the volume, or the snapshot, that it is a copy of.
	source string
	// on are the nodes that it is attached to, and which of them can't write.
	on map[string]bool
}

// newController makes one.
func newController(options controllerOptions) *controller {
	return &controller{controllerOptions: options, volumes: map[string]*volume{}, snapshots: map[string]snapshot{}, claims: map[string]types.UID{}}
}

// oneAtATime serves each call alone, which is enough for a test.
func (s *controller) oneAtATime(ctx context.Context, req any, _ *grpc.UnaryServerInfo, serve grpc.UnaryHandler) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return serve(ctx, req)
}

// left is what was made and not removed: handles, in order.
func (s *controller) left() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Concat(slices.Sorted(maps.Keys(s.volumes)), slices.Sorted(maps.Keys(s.snapshots)))
}

// ControllerGetCapabilities returns what the backend is able to do.
func (s *controller) ControllerGetCapabilities(context.Context, *csi.ControllerGetCapabilitiesRequest) (*csi.ControllerGetCapabilitiesResponse, error) {
	response := &csi.ControllerGetCapabilitiesResponse{}
	for _, claimed := range s.capabilities() {
		response.Capabilities = append(response.Capabilities, &csi.ControllerServiceCapability{
			Type: &csi.ControllerServiceCapability_Rpc{Rpc: &csi.ControllerServiceCapability_RPC{Type: claimed}},
		})
	}
	return response, nil
}

func (s *controller) capabilities() []csi.ControllerServiceCapability_RPC_Type {
	claimed := []csi.ControllerServiceCapability_RPC_Type{csi.ControllerServiceCapability_RPC_CREATE_DELETE_VOLUME}
	for able, also := range map[csi.ControllerServiceCapability_RPC_Type]bool{
		csi.ControllerServiceCapability_RPC_PUBLISH_UNPUBLISH_VOLUME: is[backend.Attacher](s),
		csi.ControllerServiceCapability_RPC_PUBLISH_READONLY:         is[backend.Attacher](s),
		csi.ControllerServiceCapability_RPC_EXPAND_VOLUME:            is[backend.Expander](s),
		csi.ControllerServiceCapability_RPC_MODIFY_VOLUME:            is[backend.Modifier](s) && s.Mutable,
		csi.ControllerServiceCapability_RPC_LIST_VOLUMES:             is[backend.Lister](s),
		csi.ControllerServiceCapability_RPC_CREATE_DELETE_SNAPSHOT:   is[backend.Snapshotter](s),
		csi.ControllerServiceCapability_RPC_GET_CAPACITY:             is[backend.CapacityReporter](s),
		csi.ControllerServiceCapability_RPC_CLONE_VOLUME:             s.Backend.Capabilities().Clones,
		csi.ControllerServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER: slices.Contains(s.Backend.Capabilities().AccessModes, corev1.ReadWriteOncePod),
	} {
		if also {
			claimed = append(claimed, able)
		}
	}
	slices.Sort(claimed)
	return claimed
}

func is[Ability any](s *controller) bool {
	_, can := backend.As[Ability](s.Backend)
	return can
}

// GetPluginInfo names the driver.
func (s *controller) GetPluginInfo(context.Context, *csi.GetPluginInfoRequest) (*csi.GetPluginInfoResponse, error) {
	return &csi.GetPluginInfoResponse{Name: s.Driver, VendorVersion: "test"}, nil
}

// GetPluginCapabilities reports that this is the Controller service.
func (s *controller) GetPluginCapabilities(context.Context, *csi.GetPluginCapabilitiesRequest) (*csi.GetPluginCapabilitiesResponse, error) {
	return &csi.GetPluginCapabilitiesResponse{Capabilities: []*csi.PluginCapability{serviceCapability()}}, nil
}

// serviceCapability is what a plug-in claims that has a Controller service.
func serviceCapability() *csi.PluginCapability {
	return &csi.PluginCapability{Type: &csi.PluginCapability_Service_{
		Service: &csi.PluginCapability_Service{Type: csi.PluginCapability_Service_CONTROLLER_SERVICE},
	}}
}

// Probe says that it is ready.
func (s *controller) Probe(context.Context, *csi.ProbeRequest) (*csi.ProbeResponse, error) {
	return &csi.ProbeResponse{}, nil
}

// find is a volume that was made, or the error that there is none.
func (s *controller) find(id string) (*volume, error) {
	if id == "" {
		return nil, missing("volume_id")
	}
	known, found := s.volumes[id]
	if !found {
		return nil, toStatus(backend.NotFound.Errorf("there is no volume %s", id))
	}
	return known, nil
}

// finished repeats a call until it doesn't say any more that it goes on.
func (s *controller) finished(ctx context.Context, call func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, s.Patience)
	defer cancel()
	for {
		err := call(ctx)
		if !backend.Unfinished(err) {
			return toStatus(err)
		}
		select {
		case <-ctx.Done():
			return toStatus(err)
		case <-time.After(pause):
		}
	}
}

// attributes are what the node gets to know of a volume.
func (s *controller) attributes(made *backend.Volume) map[string]string {
	attributes := map[string]string{stowagev1alpha1.BackendAttribute: s.Name}
	maps.Copy(attributes, made.Attributes)
	return attributes
}
