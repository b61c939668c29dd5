package csicontroller

import (
	"cmp"
	"context"
	"maps"
	"slices"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/protobuf/types/known/wrapperspb"
	corev1 "k8s.io/api/core/v1"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/backend"
)

// GetPluginInfo implements csispec.IdentityServer.
func (s *Service) GetPluginInfo(ctx context.Context, _ *csispec.GetPluginInfoRequest) (*csispec.GetPluginInfoResponse, error) {
	b, err := s.open(ctx)
	if err != nil {
		return nil, err
	}
	return &csispec.GetPluginInfoResponse{Name: cmp.Or(s.Driver, backend.DriverOf(b.object)), VendorVersion: s.Version}, nil
}

// GetPluginCapabilities implements csispec.IdentityServer.
func (s *Service) GetPluginCapabilities(ctx context.Context, _ *csispec.GetPluginCapabilitiesRequest) (*csispec.GetPluginCapabilitiesResponse, error) {
	b, err := s.open(ctx)
	if err != nil {
		return nil, err
	}
	services := []csispec.PluginCapability_Service_Type{csispec.PluginCapability_Service_CONTROLLER_SERVICE}
	if b.object.Spec.NFS == nil {
		services = append(services, csispec.PluginCapability_Service_VOLUME_ACCESSIBILITY_CONSTRAINTS)
	}
	response := &csispec.GetPluginCapabilitiesResponse{}
	for _, one := range services {
		response.Capabilities = append(response.Capabilities, &csispec.PluginCapability{
			Type: &csispec.PluginCapability_Service_{Service: &csispec.PluginCapability_Service{Type: one}},
		})
	}
	return response, nil
}

// Probe implements csispec.IdentityServer: it is ready while there is a StorageBackend to serve.
func (s *Service) Probe(ctx context.Context, _ *csispec.ProbeRequest) (*csispec.ProbeResponse, error) {
	_, err := s.open(ctx)
	return &csispec.ProbeResponse{Ready: wrapperspb.Bool(err == nil)}, nil
}

// ControllerGetCapabilities implements csispec.ControllerServer.
func (s *Service) ControllerGetCapabilities(ctx context.Context, _ *csispec.ControllerGetCapabilitiesRequest) (*csispec.ControllerGetCapabilitiesResponse, error) {
	b, err := s.open(ctx)
	if err != nil {
		return nil, err
	}
	response := &csispec.ControllerGetCapabilitiesResponse{}
	for _, claimed := range b.capabilities() {
		response.Capabilities = append(response.Capabilities, &csispec.ControllerServiceCapability{
			Type: &csispec.ControllerServiceCapability_Rpc{Rpc: &csispec.ControllerServiceCapability_RPC{Type: claimed}},
		})
	}
	return response, nil
}

// capabilities are what the backend is able to do.
func (s storage) capabilities() []csispec.ControllerServiceCapability_RPC_Type {
	claimed := []csispec.ControllerServiceCapability_RPC_Type{csispec.ControllerServiceCapability_RPC_CREATE_DELETE_VOLUME}
	for able, also := range map[csispec.ControllerServiceCapability_RPC_Type]bool{
		csispec.ControllerServiceCapability_RPC_PUBLISH_UNPUBLISH_VOLUME: is[backend.Attacher](s.Backend),
		csispec.ControllerServiceCapability_RPC_PUBLISH_READONLY:         is[backend.Attacher](s.Backend),
		csispec.ControllerServiceCapability_RPC_EXPAND_VOLUME:            is[backend.Expander](s.Backend),
		csispec.ControllerServiceCapability_RPC_MODIFY_VOLUME:            is[backend.Modifier](s.Backend),
		csispec.ControllerServiceCapability_RPC_LIST_VOLUMES:             is[backend.Lister](s.Backend),
		csispec.ControllerServiceCapability_RPC_CREATE_DELETE_SNAPSHOT:   is[backend.Snapshotter](s.Backend),
		csispec.ControllerServiceCapability_RPC_LIST_SNAPSHOTS:           is[backend.Snapshotter](s.Backend) && is[backend.Lister](s.Backend),
		csispec.ControllerServiceCapability_RPC_GET_CAPACITY:             is[backend.CapacityReporter](s.Backend),
		csispec.ControllerServiceCapability_RPC_CLONE_VOLUME:             s.Capabilities().Clones,
		csispec.ControllerServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER: slices.Contains(s.Capabilities().AccessModes, corev1.ReadWriteOncePod),
	} {
		if also {
			claimed = append(claimed, able)
		}
	}
	slices.Sort(claimed)
	return claimed
}

// attributes are what a node gets to know of a volume.
func (s *Service) attributes(made *backend.Volume) map[string]string {
	attributes := map[string]string{stowagev1alpha1.BackendAttribute: s.Name}
	maps.Copy(attributes, made.Attributes)
	return attributes
}
