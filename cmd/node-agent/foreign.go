package main

import (
	"errors"
	"path/filepath"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/nodemanager/csinode"
	"github.com/stowage-dev/stowage/internal/nodemanager/drivers"
	"github.com/stowage-dev/stowage/internal/nodemanager/drivers/socket"
	"github.com/stowage-dev/stowage/internal/nodemanager/objects"
	"github.com/stowage-dev/stowage/internal/nodemanager/plugins"
	"github.com/stowage-dev/stowage/internal/ownership"
)

// foreignDrivers are the CSI drivers of other projects that register on this node, and the CSINode,
// which has them and the agent's own.
type foreignDrivers struct {
	node       *csinode.Drivers
	registered *socket.Registered
}

func newForeignDrivers(mgr ctrl.Manager, options *options, shown *objects.Reader, owner ownership.Owner) foreignDrivers {
	node := &csinode.Drivers{NodeName: options.nodeName, WantedOn: options.drivers, Client: mgr.GetClient(), Live: mgr.GetAPIReader()}
	return foreignDrivers{node: node, registered: socket.NewRegistered(socket.Options{Cluster: shown, Mounts: mount.Kernel{}, Owner: owner}, node)}
}

// addTo adds what finds drivers, and what writes the CSINode, once the node is known to have no
// kubelet: a kubelet would register the same drivers.
func (f foreignDrivers) addTo(mgr ctrl.Manager, options *options) error {
	found := plugins.New(plugins.Options{
		Folder: filepath.Join(options.rootDir, plugins.FolderName), IsReserved: drivers.IsOwn, Handler: f.registered,
	})
	return errors.Join(mgr.Add(f.node), mgr.Add(found))
}
