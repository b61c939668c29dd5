package csi

import (
	"context"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stowage-dev/stowage/internal/nodemanager/drivers"
)

// Identity is the Identity service of one driver.
type Identity struct {
	csispec.UnimplementedIdentityServer
	name, version string
	inform        Informer
}

// NewIdentity makes the service of a driver, in a program of this version.
func NewIdentity(driver drivers.Driver, inform Informer, version string) *Identity {
	return &Identity{name: driver.Name(), version: version, inform: inform}
}

// GetPluginInfo implements csispec.IdentityServer.
func (i *Identity) GetPluginInfo(context.Context, *csispec.GetPluginInfoRequest) (*csispec.GetPluginInfoResponse, error) {
	return &csispec.GetPluginInfoResponse{Name: i.name, VendorVersion: i.version}, nil
}

// GetPluginCapabilities implements csispec.IdentityServer. There is no Controller
// service: what would call it is Stowage's manager, which calls backends itself.
func (i *Identity) GetPluginCapabilities(ctx context.Context, _ *csispec.GetPluginCapabilitiesRequest) (*csispec.GetPluginCapabilitiesResponse, error) {
	info, err := i.inform(ctx)
	if err != nil {
		return nil, err
	}
	response := &csispec.GetPluginCapabilitiesResponse{}
	if len(info.Topology) > 0 {
		response.Capabilities = append(response.Capabilities, &csispec.PluginCapability{
			Type: &csispec.PluginCapability_Service_{Service: &csispec.PluginCapability_Service{
				Type: csispec.PluginCapability_Service_VOLUME_ACCESSIBILITY_CONSTRAINTS,
			}},
		})
	}
	return response, nil
}

// Probe implements csispec.IdentityServer. A server that answers is ready: the agent checks
// at its start what the node needs.
func (i *Identity) Probe(context.Context, *csispec.ProbeRequest) (*csispec.ProbeResponse, error) {
	return &csispec.ProbeResponse{Ready: wrapperspb.Bool(true)}, nil
}
