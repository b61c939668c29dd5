package csi

import (
	"context"
	"slices"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/csi/calling"
)

// abilities are what a driver claims.
type abilities struct {
	controller []csispec.ControllerServiceCapability_RPC_Type
	// topology: its volumes can't be reached from every node.
	topology bool
	// grows: its volumes can grow, by the Controller service or on their node alone.
	grows bool
}

func (a abilities) has(ability csispec.ControllerServiceCapability_RPC_Type) bool {
	return slices.Contains(a.controller, ability)
}

// distinguishes reports whether the driver has names for one writer of a node and for several.
func (a abilities) distinguishes() bool {
	return a.has(csispec.ControllerServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER)
}

// abilities asks the driver for its name and its abilities, once for each connection: no call is made
// to a driver with another name.
func (c *connection) abilities(ctx context.Context, spec settings) (abilities, error) {
	c.mu.Lock()
	known := c.known
	c.mu.Unlock()
	if known != nil {
		return *known, nil
	}
	asked, err := c.ask(ctx, spec)
	if err != nil {
		return abilities{}, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.known = &asked
	return asked, nil
}

// ask reads the driver's name and abilities. Of an error, no call was made that changes anything.
func (c *connection) ask(ctx context.Context, spec settings) (abilities, error) {
	identity, asked := csispec.NewIdentityClient(c.grpc), abilities{}
	info, err := calling.Call(ctx, spec.driver, identity.GetPluginInfo, &csispec.GetPluginInfoRequest{})
	if err != nil {
		return asked, spec.driver.Unanswered("GetPluginInfo", err)
	}
	if info.GetName() != spec.Driver {
		return asked, backend.Invalid.Errorf("the driver at %s is %.200q and not %s: give the StorageBackend of this driver its own endpoint",
			spec.Endpoint, info.GetName(), spec.Driver)
	}
	plugin, err := calling.Call(ctx, spec.driver, identity.GetPluginCapabilities, &csispec.GetPluginCapabilitiesRequest{})
	if err != nil {
		return asked, spec.driver.Unanswered("GetPluginCapabilities", err)
	}
	serves := false
	for _, capability := range plugin.GetCapabilities() {
		switch capability.GetService().GetType() {
		case csispec.PluginCapability_Service_CONTROLLER_SERVICE:
			serves = true
		case csispec.PluginCapability_Service_VOLUME_ACCESSIBILITY_CONSTRAINTS:
			asked.topology = true
		}
		asked.grows = asked.grows || capability.GetVolumeExpansion() != nil
	}
	if !serves {
		return asked, backend.Invalid.Errorf("driver %s has no Controller service at %s: it needs no StorageBackend, or its Controller is elsewhere", spec.Driver, spec.Endpoint)
	}
	claimed, err := calling.Call(ctx, spec.driver, csispec.NewControllerClient(c.grpc).ControllerGetCapabilities, &csispec.ControllerGetCapabilitiesRequest{})
	if err != nil {
		return asked, spec.driver.Unanswered("ControllerGetCapabilities", err)
	}
	for _, capability := range claimed.GetCapabilities() {
		asked.controller = append(asked.controller, capability.GetRpc().GetType())
	}
	return asked, nil
}
