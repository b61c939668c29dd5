package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/csicontroller"
	"github.com/stowage-dev/stowage/internal/index"
	"github.com/stowage-dev/stowage/internal/program"
	"github.com/stowage-dev/stowage/internal/volume"
)

// volumesOf finds the volumes with a handle in the cache.
func volumesOf(cached client.Reader) func(context.Context, string, string) ([]corev1.PersistentVolume, error) {
	return func(ctx context.Context, driver, handle string) ([]corev1.PersistentVolume, error) {
		return index.VolumesOf(ctx, cached, volume.Key(driver, handle))
	}
}

// addCSIControllers has a manager serve StorageBackends by CSI, each on a socket.
func addCSIControllers(mgr ctrl.Manager, options options, cluster types.UID, kinds *backend.Registry, log logr.Logger) error {
	for _, name := range slices.Sorted(maps.Keys(options.csiControllers)) {
		if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
			return fmt.Errorf("--csi-controllers: %.253q is no name of a StorageBackend: %s", name, strings.Join(problems, ", "))
		}
		service := csicontroller.New(csicontroller.Options{
			Name: name, Cluster: cluster, Live: mgr.GetAPIReader(), VolumesOf: volumesOf(mgr.GetClient()), Backends: kinds,
			CSISnapshotter: options.csiSnapshotterDrivers, Version: program.Version(),
		})
		server, err := csicontroller.NewServer(service, options.csiControllers[name], log)
		if err != nil {
			return fmt.Errorf("--csi-controllers: %w", err)
		}
		if err := mgr.Add(server); err != nil {
			return err
		}
	}
	return nil
}
