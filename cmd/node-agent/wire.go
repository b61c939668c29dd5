package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"k8s.io/utils/exec"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/device/clouddisk"
	"github.com/stowage-dev/stowage/internal/device/filesystem"
	"github.com/stowage-dev/stowage/internal/event"
	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/node/localdisk"
	"github.com/stowage-dev/stowage/internal/node/localdisk/diskagent"
	"github.com/stowage-dev/stowage/internal/node/localdisk/recycling"
	"github.com/stowage-dev/stowage/internal/node/localdisk/store"
	"github.com/stowage-dev/stowage/internal/node/localdisk/volumeagent"
	"github.com/stowage-dev/stowage/internal/nodemanager"
	"github.com/stowage-dev/stowage/internal/nodemanager/drivers"
	"github.com/stowage-dev/stowage/internal/nodemanager/drivers/gcepd"
	"github.com/stowage-dev/stowage/internal/nodemanager/growth"
	"github.com/stowage-dev/stowage/internal/nodemanager/guard"
	nodemetrics "github.com/stowage-dev/stowage/internal/nodemanager/metrics"
	"github.com/stowage-dev/stowage/internal/nodemanager/objects"
	"github.com/stowage-dev/stowage/internal/nodemanager/podclaims"
	"github.com/stowage-dev/stowage/internal/nodemanager/poddir"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes/configmap"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes/csi"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes/downwardapi"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes/emptydir"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes/hostpath"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes/inlinenfs"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes/local"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes/projected"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes/secret"
	"github.com/stowage-dev/stowage/internal/ownership"
)

// eventSource is the component that events name.
const eventSource = "stowage-node-agent"

// addControllers adds what the agent does to its manager.
func addControllers(ctx context.Context, mgr ctrl.Manager, options *options) error {
	made := store.NewStore(options.localBase, filesystem.NewFileSystems(exec.New()))
	volumesOnDisks := localdisk.Options{
		NodeName: options.nodeName,
		Store:    made,
		Client:   mgr.GetClient(),
		Live:     mgr.GetAPIReader(),
		Events:   recorderOf(mgr),
		Metrics:  metrics.Registry,
	}
	onDisks := volumeagent.NewReconciler(volumesOnDisks)
	if err := onDisks.SetupWithManager(mgr); err != nil {
		return fmt.Errorf("setting up local volumes: %w", err)
	}
	recyclings := recycling.NewReconciler(recycling.Options{
		NodeName: options.nodeName,
		Folder:   recycling.Folder{Root: options.recycleRoot},
		Client:   mgr.GetClient(),
		Live:     mgr.GetAPIReader(),
		Clock:    clock.RealClock{},
	})
	if err := recyclings.SetupWithManager(mgr); err != nil {
		return fmt.Errorf("setting up the recycling of volumes: %w", err)
	}
	if err := diskagent.NewReconciler(volumesOnDisks).SetupWithManager(mgr); err != nil {
		return fmt.Errorf("setting up local disks: %w", err)
	}
	switch {
	case options.followPods:
		return followPods(ctx, mgr, options, onDisks)
	case options.kubeletDir != "":
		return serveKubelet(mgr, options, onDisks)
	default:
		return mgr.AddReadyzCheck("ping", healthz.Ping)
	}
}

// recorderOf sends and logs the agent's events.
func recorderOf(mgr ctrl.Manager) events.EventRecorder {
	return event.Logged(event.Bounded(mgr.GetEventRecorder(eventSource)), ctrl.Log)
}

// followPods adds the node manager, which begins once the guard lets it.
func followPods(ctx context.Context, mgr ctrl.Manager, options *options, onDisks *volumeagent.Reconciler) error {
	if err := podclaims.Index(ctx, mgr.GetFieldIndexer()); err != nil {
		return err
	}
	tree, err := newTree(options)
	if err != nil {
		return err
	}
	owner := ownership.Owner{Events: recorderOf(mgr), SELinux: ownership.HasSELinux()}
	disks, err := gcepd.New(stowagev1alpha1.GCEDriver, gcepd.Options{
		Mounter: mount.Kernel{}, Systems: onDisks.Store.FileSystems, Finder: clouddisk.NewDiskFolder(options.deviceDir),
		Folder: options.records(stowagev1alpha1.GCEDriver), Earlier: filepath.Join(options.rootDir, earlierDiskDir), Owner: owner,
	})
	if err != nil {
		return err
	}
	shown, err := newObjects(mgr, options.nodeName)
	if err != nil {
		return err
	}
	others := newForeignDrivers(mgr, options, shown, owner)
	served, err := volumeTypes(options, onDisks, csi.CallerOptions{
		Mounter: mount.Kernel{}, Root: options.rootDir, Drivers: []drivers.Driver{disks}, Owner: owner,
		Registered: others.registered, Objects: shown, NodeName: options.nodeName,
	})
	if err != nil {
		return err
	}
	numbers, err := nodemetrics.New(metrics.Registry, mount.Kernel{})
	if err != nil {
		return fmt.Errorf("setting up metrics of the node's volumes: %w", err)
	}
	common := nodemanager.Options{
		NodeName: options.nodeName,
		Tree:     tree,
		Volumes:  served.directories,
		Devices:  served.devices,
		Disks:    served.caller.Attachable(disks),
		Objects:  shown,
		Mounter:  mount.Kernel{},
		Client:   mgr.GetClient(),
		Live:     mgr.GetAPIReader(),
		Events:   recorderOf(mgr),
		Clock:    clock.RealClock{},
		Numbers:  numbers,

		WatchMounts: mount.Watch,
	}
	waits := &guard.Guard{
		NodeName: options.nodeName,
		Live:     mgr.GetAPIReader(),
		Clock:    clock.RealClock{},
		Begin:    func() error { return errors.Join(others.addTo(mgr, options), begin(mgr, common)) },
	}
	if err := mgr.AddReadyzCheck("follow-pods", waits.Ready); err != nil {
		return err
	}
	return mgr.Add(waits)
}

// newTree finds what an earlier agent left, and withdraws what a reboot made untrue.
func newTree(options *options) (poddir.Tree, error) {
	tree, err := poddir.NewTree(options.rootDir)
	if err != nil {
		return tree, err
	}
	boot, err := clouddisk.BootID()
	if err != nil {
		return tree, err
	}
	return tree, tree.WithdrawAfterReboot(boot)
}

// begin adds the node manager to a manager that runs, once the node is known to have no
// kubelet.
func begin(mgr ctrl.Manager, common nodemanager.Options) error {
	if err := growth.New(growth.Options{
		Volumes: common.Volumes, Devices: common.Devices, Mounter: common.Mounter, Client: common.Client, Live: common.Live,
		Events: common.Events, Numbers: common.Numbers, Clock: common.Clock,
	}).SetupWithManager(mgr, mgr.GetCache()); err != nil {
		return err
	}
	return nodemanager.NewReconciler(common).SetupWithManager(mgr, mgr.GetCache())
}

// newObjects reads what volumes show. It isn't in the manager's cache: a node may watch
// secrets and configMaps by their names only.
func newObjects(mgr ctrl.Manager, nodeName string) (*objects.Reader, error) {
	live, err := client.NewWithWatch(mgr.GetConfig(), client.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(),
	})
	if err != nil {
		return nil, fmt.Errorf("setting up how secrets and configMaps are read: %w", err)
	}
	return objects.New(objects.Options{NodeName: nodeName, Live: live, Cached: mgr.GetClient(), Clock: clock.RealClock{}}), nil
}

// types are what this agent can show pods as directories, and as devices.
type types struct {
	directories, devices volumes.Registry
	caller               *csi.Caller
}

// volumeTypes makes the volume types. It adds the drivers of directories, images and shares to those
// that are called.
func volumeTypes(options *options, onDisks *volumeagent.Reconciler, called csi.CallerOptions) (types, error) {
	mounter, owner := mount.Kernel{}, called.Owner
	plain, shares, err := newNFSDriver(options, nil)
	if err != nil {
		return types{}, err
	}
	directoriesAndImages, err := newLocalDriver(options, onDisks)
	if err != nil {
		return types{}, err
	}
	called.Drivers = append(called.Drivers, directoriesAndImages.WithOwner(owner), shares)
	caller, err := csi.NewCaller(called)
	if err != nil {
		return types{}, err
	}
	return types{caller: caller, devices: volumes.Registry{csi.NewDevices(caller)}, directories: volumes.Registry{
		csi.New(caller), hostpath.New(mounter, options.rootDir),
		local.New(mounter).WithOwner(owner), emptydir.New(mounter).WithOwner(owner), plain,
		configmap.New(mounter), secret.New(mounter).WithOwner(owner),
		downwardapi.New(mounter).WithOwner(owner), projected.New(mounter).WithOwner(owner), inlinenfs.New(shares),
	}}, nil
}
