package socket

import (
	"context"
	"fmt"
	"sync"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/stowage-dev/stowage/internal/nodemanager/csinode"
	"github.com/stowage-dev/stowage/internal/nodemanager/drivers"
	"github.com/stowage-dev/stowage/internal/nodemanager/plugins"
)

// Nodes writes what drivers say of the node: see csinode.Drivers.
type Nodes interface {
	Install(ctx context.Context, info csinode.Info) error
	Remove(ctx context.Context, driver string) error
}

// Registered are the drivers that are registered on the node. It takes up what package plugins
// finds.
type Registered struct {
	options Options
	nodes   Nodes
	mu      sync.Mutex
	known   map[string]*Driver
}

var (
	_ drivers.Registered = &Registered{}
	_ plugins.Handler    = &Registered{}
)

// NewRegistered returns a Registered without drivers.
func NewRegistered(options Options, nodes Nodes) *Registered {
	return &Registered{options: options, nodes: nodes, known: map[string]*Driver{}}
}

// Find implements drivers.Registered.
func (r *Registered) Find(name string) (drivers.Foreign, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if found := r.known[name]; found != nil {
		return found, nil
	}
	return nil, fmt.Errorf("driver name %s not found in the list of registered CSI drivers: "+
		"look whether the driver's node plug-in runs on this node, and registers with the agent", name)
}

// Register implements plugins.Handler. As with a kubelet, the CSINode has the driver before the
// driver is used.
func (r *Registered) Register(ctx context.Context, plugin plugins.Plugin) error {
	driver, err := New(plugin.Name, plugin.Endpoint, r.options)
	if err != nil {
		return err
	}
	info, err := driver.info(ctx)
	if err == nil {
		err = r.nodes.Install(ctx, info)
	}
	if err != nil {
		_ = driver.Close()
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.known[plugin.Name] = driver
	return nil
}

// Deregister implements plugins.Handler. Calls that wait end, and are repeated when the driver is
// back.
func (r *Registered) Deregister(ctx context.Context, plugin plugins.Plugin) {
	r.mu.Lock()
	driver := r.known[plugin.Name]
	delete(r.known, plugin.Name)
	r.mu.Unlock()
	if driver != nil {
		_ = driver.Close()
	}
	if err := r.nodes.Remove(ctx, plugin.Name); err != nil {
		logf.FromContext(ctx).Error(err, "removing a CSI driver that is no longer registered from the CSINode", "driver", plugin.Name)
	}
}

// info asks the driver for the node.
func (d *Driver) info(ctx context.Context) (csinode.Info, error) {
	ctx, cancel := context.WithTimeout(ctx, d.CallTimeout)
	defer cancel()
	answer, err := d.node.NodeGetInfo(ctx, &csispec.NodeGetInfoRequest{})
	if err != nil {
		return csinode.Info{}, d.errorOf("NodeGetInfo", err)
	}
	return csinode.Info{
		Driver: d.name, NodeID: answer.GetNodeId(), MaxVolumes: answer.GetMaxVolumesPerNode(), Topology: answer.GetAccessibleTopology().GetSegments(),
	}, nil
}
