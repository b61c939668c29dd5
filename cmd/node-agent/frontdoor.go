package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	frontdoor "github.com/stowage-dev/stowage/internal/csi"
	"github.com/stowage-dev/stowage/internal/csi/calls"
	"github.com/stowage-dev/stowage/internal/device/clouddisk"
	"github.com/stowage-dev/stowage/internal/effect"
	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/mount/remote"
	"github.com/stowage-dev/stowage/internal/node/localdisk/volumeagent"
	"github.com/stowage-dev/stowage/internal/nodemanager/drivers"
	"github.com/stowage-dev/stowage/internal/nodemanager/drivers/gcepd"
	localdriver "github.com/stowage-dev/stowage/internal/nodemanager/drivers/local"
	nfsdriver "github.com/stowage-dev/stowage/internal/nodemanager/drivers/nfs"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes/inlinenfs"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes/nfs"
	"github.com/stowage-dev/stowage/internal/program"
)

// served is one driver for the kubelet, and what it reports about the node.
type served struct {
	driver drivers.Driver
	inform frontdoor.Informer
}

// serveKubelet adds a server for each driver, which the kubelet calls to mount volumes.
func serveKubelet(mgr ctrl.Manager, options *options, onDisks *volumeagent.Reconciler) error {
	measured, err := calls.New(metrics.Registry)
	if err != nil {
		return err
	}
	offered, err := servedDrivers(options, onDisks, mgr.GetAPIReader())
	if err != nil {
		return fmt.Errorf("setting up drivers for the kubelet: %w", err)
	}
	if err := mgr.AddReadyzCheck("ping", healthz.Ping); err != nil {
		return err
	}
	for _, one := range offered {
		server := frontdoor.NewServer(one.driver, one.inform, frontdoor.ServerOptions{
			KubeletDir: options.kubeletDir, CheckDir: checkMountsSeen, Version: program.Version(), Calls: measured,
			Log: ctrl.Log.WithName("csi").WithValues(effect.Node, options.nodeName),
		})
		if err := mgr.Add(server); err != nil {
			return err
		}
		if err := mgr.AddReadyzCheck(one.driver.Name(), server.Ready); err != nil {
			return err
		}
		if err := mgr.AddHealthzCheck(one.driver.Name(), server.Alive); err != nil {
			return err
		}
	}
	return nil
}

// inPod is a variable that the environment of programs in pods has.
const inPod = "KUBERNETES_SERVICE_HOST"

// checkMountsSeen returns an error if pods wouldn't see what is mounted in the kubelet's
// folder: they would write to the node's own disk.
func checkMountsSeen(dir string) error {
	resolved, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return err
	}
	if resolved != dir {
		return fmt.Errorf("--kubelet-dir %s leads to %s by a symlink, which a mount table doesn't know: let it, and the kubelet's --root-dir, be that", dir, resolved)
	}
	if os.Getenv(inPod) == "" {
		return nil // in the machine's own mount namespace, which kubelet and pods see anyway
	}
	if err := mount.CheckShared(dir); err != nil {
		return fmt.Errorf("%w: mount it into the agent's pod with mountPropagation Bidirectional", err)
	}
	return nil
}

// servedDrivers makes the drivers for the kubelet.
func servedDrivers(options *options, onDisks *volumeagent.Reconciler, live client.Reader) ([]served, error) {
	_, shares, err := newNFSDriver(options, backendsIn(live))
	if err != nil {
		return nil, err
	}
	local, err := newLocalDriver(options, onDisks)
	if err != nil {
		return nil, err
	}
	disks, err := gcepd.New(stowagev1alpha1.GCEDriver, gcepd.Options{
		Mounter: mount.Kernel{}, Systems: onDisks.Store.FileSystems, Finder: clouddisk.NewDiskFolder(options.deviceDir), Folder: options.records(stowagev1alpha1.GCEDriver),
	})
	if err != nil {
		return nil, err
	}
	return []served{
		{shares, options.anywhere},
		{local, options.onThisNode},
		{disks, options.inZone(live)},
	}, nil
}

// newNFSDriver is the nfs driver, with a kubelet and without, and the volume type for volumes of
// source nfs. Without a kubelet, backends is nil.
func newNFSDriver(options *options, backends inlinenfs.Backends) (nfs.Plugin, inlinenfs.Driver, error) {
	kernelCalls, folder := remote.NewCalls(), filepath.Join(options.rootDir, nfsDir)
	servers := nfsdriver.NewShares(kernelCalls)
	shares, err := nfs.New(servers, folder)
	if err != nil {
		return nfs.Plugin{}, inlinenfs.Driver{}, err
	}
	claimed, err := nfsdriver.New(servers, options.records(stowagev1alpha1.NFSDriver))
	if err != nil {
		return nfs.Plugin{}, inlinenfs.Driver{}, err
	}
	driver, err := inlinenfs.NewDriver(inlinenfs.Options{
		Claimed: claimed.WithEarlier(folder), Shares: shares, Folders: kernelCalls, Backends: backends, Folder: filepath.Join(options.rootDir, inlineDir),
	})
	return shares, driver, err
}

// +kubebuilder:rbac:groups=stowage.dev,resources=storagebackends,verbs=get

// backendsIn reads backends that pods name from the API server, not from a cache. A cached backend
// may still allow what the backend no longer allows.
func backendsIn(live client.Reader) inlinenfs.Backends {
	return func(ctx context.Context, name string) (*stowagev1alpha1.StorageBackend, error) {
		backend := &stowagev1alpha1.StorageBackend{}
		if err := live.Get(ctx, client.ObjectKey{Name: name}, backend); err != nil {
			return nil, fmt.Errorf("reading StorageBackend %s, which the pod names: %w", name, err)
		}
		return backend, nil
	}
}

// newLocalDriver is the local driver, with a kubelet and without.
func newLocalDriver(options *options, onDisks *volumeagent.Reconciler) (*localdriver.Driver, error) {
	local := localdriver.Volumes{Base: string(onDisks.Store.Base), IsCopied: onDisks.Store.IsCopied, CheckDisk: onDisks.CheckDisk}
	return localdriver.New(mount.Kernel{}, onDisks.Store.FileSystems, local, options.records(stowagev1alpha1.LocalDriver))
}

// anywhere is the node's information for a driver whose volumes are as near to each node.
func (o *options) anywhere(context.Context) (frontdoor.Info, error) {
	return frontdoor.Info{NodeID: o.nodeName}, nil
}

// onThisNode is the node's information for a driver whose volumes lie on nodes.
func (o *options) onThisNode(context.Context) (frontdoor.Info, error) {
	return frontdoor.Info{NodeID: o.nodeName, Topology: map[string]string{stowagev1alpha1.TopologyNodeLabel: o.nodeName}}, nil
}

// +kubebuilder:rbac:groups="",resources=nodes,verbs=get

// inZone is the node's information for a driver whose volumes are disks of a zone. A cloud
// labels the Node with its zone, at times after the kubelet starts. Until then no zone is
// reported, and once it is known, the driver registers again.
func (o *options) inZone(live client.Reader) frontdoor.Informer {
	return func(ctx context.Context) (frontdoor.Info, error) {
		info := frontdoor.Info{NodeID: o.nodeName}
		node := &corev1.Node{}
		if err := live.Get(ctx, client.ObjectKey{Name: o.nodeName}, node); err != nil {
			return frontdoor.Info{}, fmt.Errorf("reading the zone of node %s: %w", o.nodeName, err)
		}
		info.MaxVolumes = int64(o.disksOn(node))
		if zone := node.Labels[corev1.LabelTopologyZone]; zone != "" {
			info.Topology = map[string]string{corev1.LabelTopologyZone: zone}
		}
		return info, nil
	}
}
