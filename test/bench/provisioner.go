package main

import (
	"context"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
	"github.com/stowage-dev/stowage/controllers"
	"github.com/stowage-dev/stowage/internal/backend"
	"github.com/stowage-dev/stowage/internal/backend/fake"
	"github.com/stowage-dev/stowage/internal/program"
)

// heldMetric is how many volumes the provisioner's storage holds.
const heldMetric = "bench_held_volumes"

// runProvisioner is the manager, with storage in memory that takes no time in place
// of local disks: what is measured is what the manager and the API server need.
func runProvisioner(ctx context.Context, kubeconfig, address string) error {
	mgr, err := newManager(kubeconfig, address)
	if err != nil {
		return err
	}
	storage := fake.New()
	held := prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: heldMetric, Help: "Volumes that the storage holds."},
		func() float64 { return float64(storage.Len()) })
	if err := metrics.Registry.Register(held); err != nil {
		return fmt.Errorf("registering %s: %w", heldMetric, err)
	}
	err = controllers.Setup(ctx, mgr, controllers.Options{
		Scope:    controllers.ClusterScope,
		Backends: backend.NewRegistry(fake.Kind{For: stowagev1alpha1.LocalType, Backend: storage}),
		Metrics:  metrics.Registry,
	})
	if err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// newManager makes a controller manager like the real one, which serves metrics at an
// address; "0" for none.
func newManager(kubeconfig, address string) (ctrl.Manager, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("reading how to reach the API server: %w", err)
	}
	config.QPS = noClientLimit
	scheme, err := program.Scheme()
	if err != nil {
		return nil, err
	}
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: scheme, Client: controllers.ClientOptions(), Metrics: metricsserver.Options{BindAddress: address},
	})
	if err != nil {
		return nil, fmt.Errorf("making the manager: %w", err)
	}
	return mgr, nil
}
