package main

import (
	"fmt"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"

	"github.com/stowage-dev/stowage/controllers"
	"github.com/stowage-dev/stowage/internal/backlog"
	"github.com/stowage-dev/stowage/internal/event"
	"github.com/stowage-dev/stowage/internal/leadership"
	"github.com/stowage-dev/stowage/internal/program"
)

const (
	// shutdownTimeout is how long work may go on after a signal. The next manager resumes the
	// rest, as after a crash.
	shutdownTimeout = 10 * time.Second
)

// newManager makes the controller manager, and the lease by which it leads: nil if no election was requested.
func newManager(options options) (ctrl.Manager, *leadership.Lease, error) {
	scheme, err := program.Scheme()
	if err != nil {
		return nil, nil, err
	}
	connection, err := options.Config()
	if err != nil {
		return nil, nil, err
	}
	// Lists of a whole kind are read live again and again. To unpack them took 4 % of what deletions need.
	connection.DisableCompression = true
	var lease *leadership.Lease
	if options.leaderElect {
		if lease, err = leadership.New(connection, options.leaderElectionNamespace, "manager.stowage.dev"); err != nil {
			return nil, nil, err
		}
	}
	pace := event.NewPace()
	pace.Apply(connection)
	mgr, err := ctrl.NewManager(connection, ctrl.Options{
		Scheme:                              scheme,
		Client:                              controllers.ClientOptions(),
		Cache:                               cacheOptions(options.resync, options.namespace()),
		NewCache:                            backlog.NewCache,
		Logger:                              program.Quiet(ctrl.Log),
		Metrics:                             options.Metrics(),
		HealthProbeBindAddress:              options.ProbeAddress,
		PprofBindAddress:                    options.PprofAddress,
		Controller:                          config.Controller{GroupKindConcurrency: options.Workers},
		LeaderElection:                      options.leaderElect,
		LeaderElectionReleaseOnCancel:       true,
		LeaderElectionResourceLockInterface: lease,
		GracefulShutdownTimeout:             new(shutdownTimeout),
	})
	if err != nil {
		return nil, nil, fmt.Errorf("making the manager: %w", err)
	}
	lease.RecordWith(mgr)
	if err := mgr.Add(pace); err != nil {
		return nil, nil, fmt.Errorf("adding the pace of events: %w", err)
	}
	for _, add := range []func(string, healthz.Checker) error{mgr.AddHealthzCheck, mgr.AddReadyzCheck} {
		if err := add("ping", healthz.Ping); err != nil {
			return nil, nil, fmt.Errorf("adding a probe: %w", err)
		}
	}
	return mgr, lease, nil
}
