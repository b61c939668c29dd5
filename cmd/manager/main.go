// Command manager runs Stowage's reconcilers: it matches, binds, provisions and
// reclaims. It is unprivileged and mounts nothing.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"github.com/spf13/pflag"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/stowage-dev/stowage/controllers"
	"github.com/stowage-dev/stowage/controllers/reconciler"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/csi"
	"github.com/stowage-dev/stowage/internal/backend/csi/measured"
	"github.com/stowage-dev/stowage/internal/backend/gce"
	"github.com/stowage-dev/stowage/internal/backend/local"
	"github.com/stowage-dev/stowage/internal/backend/nfs"
	"github.com/stowage-dev/stowage/internal/program"
)

const about = `The Stowage manager matches claims to volumes and binds them, provisions, reclaims and expands.

It runs beside kube-controller-manager (--scope=classes), or instead of its volume
controllers (--scope=cluster). Storage is configured with StorageBackend objects.`

func main() {
	flags := pflag.NewFlagSet("manager", pflag.ContinueOnError)
	options := options{}
	options.addFlags(flags)
	options.Parse(flags, about, os.Args[1:])
	if err := run(options); err != nil {
		program.Fail(err)
	}
}

func run(options options) error {
	if err := options.check(); err != nil {
		return err
	}
	scope := reconciler.Scope(options.scope)
	log := options.Logger()
	ctrllog.SetLogger(log)
	klog.SetLogger(log)
	limitMemory(memlimit.FromCgroup, log)

	mgr, lease, err := newManager(options)
	if err != nil {
		return err
	}
	if err := program.ServeMetrics(metrics.Registry); err != nil {
		return err
	}
	ctx := ctrl.SetupSignalHandler()
	cluster, err := clusterIdentity(ctx, mgr.GetAPIReader())
	if err != nil {
		return err
	}
	secrets, err := client.NewWithWatch(mgr.GetConfig(), client.Options{Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper()})
	if err != nil {
		return fmt.Errorf("making a client of Secrets: %w", err)
	}
	calls, err := measured.New(metrics.Registry, log)
	if err != nil {
		return err
	}
	disks := local.NewKind(mgr.GetClient(), mgr.GetAPIReader(), filepath.Clean(options.localBase))
	if err := disks.Follow(ctx, mgr.GetCache()); err != nil {
		return err
	}
	servers := nfs.NewKind(cluster, options.nfsMounts)
	keys := newKeys(ctx, secrets, options.namespace())
	kinds := backend.NewRegistry(
		disks, servers,
		gce.NewKind(cluster, keys), csi.NewKind(csiCluster{keys: keys, cached: mgr.GetClient()}, calls))
	err = controllers.Setup(ctx, mgr, controllers.Options{
		Scope: scope, BindSnapshots: options.bindSnapshots, CSISnapshotter: options.csiSnapshotterDrivers, Backends: kinds, Recycler: servers, Namespace: options.namespace(), Metrics: metrics.Registry,
		AttachmentCheckInterval: options.attachmentCheck, ForceDetachAfter: options.forceDetachAfter, Lease: lease,
	})
	if err != nil {
		return err
	}
	if err := addCSIControllers(mgr, options, cluster, kinds, log); err != nil {
		return err
	}
	log.Info("starting the manager", "version", program.Version(), "scope", scope)
	return mgr.Start(ctx)
}
