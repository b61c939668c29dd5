package main

import (
	"fmt"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"

	"github.com/stowage-dev/stowage/controllers"
	"github.com/stowage-dev/stowage/internal/program"
)

const (
	// shutdownTimeout is how long work may go on after a signal. The next manager resumes the
	// rest, as after a crash.
	shutdownTimeout = 10 * time.Second
)

// newManager makes the controller manager.
func newManager(options options) (ctrl.Manager, error) {
	scheme, err := program.Scheme()
	if err != nil {
		return nil, err
	}
	connection, err := options.Config()
	if err != nil {
		return nil, err
	}
	mgr, err := ctrl.NewManager(connection, ctrl.Options{
		Scheme:                        scheme,
		Client:                        controllers.ClientOptions(),
		Cache:                         cacheOptions(options.resync, options.namespace()),
		Logger:                        program.Quiet(ctrl.Log),
		Metrics:                       options.Metrics(),
		HealthProbeBindAddress:        options.ProbeAddress,
		PprofBindAddress:              options.PprofAddress,
		Controller:                    config.Controller{GroupKindConcurrency: options.Workers},
		LeaderElection:                options.leaderElect,
		LeaderElectionID:              "manager.stowage.dev",
		LeaderElectionNamespace:       options.leaderElectionNamespace,
		LeaderElectionReleaseOnCancel: true,
		GracefulShutdownTimeout:       new(shutdownTimeout),
	})
	if err != nil {
		return nil, fmt.Errorf("making the manager: %w", err)
	}
	for _, add := range []func(string, healthz.Checker) error{mgr.AddHealthzCheck, mgr.AddReadyzCheck} {
		if err := add("ping", healthz.Ping); err != nil {
			return nil, fmt.Errorf("adding a probe: %w", err)
		}
	}
	return mgr, nil
}
