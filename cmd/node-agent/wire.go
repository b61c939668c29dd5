package main

import (
	"context"
	"fmt"
	"path/filepath"

	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/internal/mount"
	"github.com/stowage-dev/stowage/internal/nodemanager"
	"github.com/stowage-dev/stowage/internal/nodemanager/localvolume"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes/csi"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes/emptydir"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes/hostpath"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes/local"
	"github.com/stowage-dev/stowage/internal/nodemanager/volumes/nfs"
)

// eventSource is who events come from.
const eventSource = "stowage-node-agent"

// nfsDir is the folder of the agent's root directory in which NFS shares are mounted
// once for all pods.
const nfsDir = "nfs"

// addControllers adds what the agent does to its manager.
func addControllers(ctx context.Context, mgr ctrl.Manager, options *options) error {
	localVolumes := localvolume.NewReconciler(localvolume.Options{
		NodeName: options.nodeName,
		Store:    &localvolume.Store{Base: options.localBase},
		Client:   mgr.GetClient(),
		Live:     mgr.GetAPIReader(),
		Events:   mgr.GetEventRecorder(eventSource),
	})
	if err := localVolumes.SetupWithManager(mgr); err != nil {
		return fmt.Errorf("setting up local volumes: %w", err)
	}
	if !options.followPods {
		return mgr.AddReadyzCheck("ping", healthz.Ping)
	}
	return followPods(ctx, mgr, options)
}

// followPods adds the node manager, which begins once the guard lets it.
func followPods(ctx context.Context, mgr ctrl.Manager, options *options) error {
	if err := nodemanager.IndexPods(ctx, mgr); err != nil {
		return err
	}
	tree, err := nodemanager.NewTree(options.rootDir)
	if err != nil {
		return err
	}
	types, err := volumeTypes(options)
	if err != nil {
		return err
	}
	pods := nodemanager.NewReconciler(nodemanager.Options{
		NodeName: options.nodeName,
		Tree:     tree,
		Volumes:  types,
		Mounter:  mount.Kernel{},
		Client:   mgr.GetClient(),
		Live:     mgr.GetAPIReader(),
		Events:   mgr.GetEventRecorder(eventSource),
		Clock:    clock.RealClock{},
	})
	guard := &nodemanager.Guard{
		NodeName: options.nodeName,
		Live:     mgr.GetAPIReader(),
		Clock:    clock.RealClock{},
		Begin:    func() error { return pods.SetupWithManager(mgr) },
	}
	if err := mgr.AddReadyzCheck("follow-pods", guard.Ready); err != nil {
		return err
	}
	return mgr.Add(guard)
}

// volumeTypes is the list of what this agent can mount.
func volumeTypes(options *options) (volumes.Registry, error) {
	mounter := mount.Kernel{}
	shares, err := nfs.New(mount.NewApart(), filepath.Join(options.rootDir, nfsDir))
	if err != nil {
		return nil, err
	}
	return volumes.Registry{
		csi.New(mounter, map[string]csi.Driver{
			stowagev1alpha1.LocalDriver: csi.LocalDriver{Base: options.localBase},
		}),
		hostpath.New(mounter),
		local.New(mounter),
		emptydir.New(mounter),
		shares,
	}, nil
}
