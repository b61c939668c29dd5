package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/csicontroller"
	"github.com/stowage-dev/stowage/internal/program"
)

// addCSIControllers has a manager serve StorageBackends by CSI, each on a socket.
func addCSIControllers(mgr ctrl.Manager, sockets map[string]string, cluster types.UID, kinds *backend.Registry, log logr.Logger) error {
	for _, name := range slices.Sorted(maps.Keys(sockets)) {
		if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
			return fmt.Errorf("--csi-controllers: %.253q is no name of a StorageBackend: %s", name, strings.Join(problems, ", "))
		}
		service := csicontroller.New(csicontroller.Options{
			Name: name, Cluster: cluster, Live: mgr.GetAPIReader(), Backends: kinds, Version: program.Version(),
		})
		server, err := csicontroller.NewServer(service, sockets[name], log)
		if err != nil {
			return fmt.Errorf("--csi-controllers: %w", err)
		}
		if err := mgr.Add(server); err != nil {
			return err
		}
	}
	return nil
}
