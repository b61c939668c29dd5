package volumeagent

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	stowagev1alpha1 "github.com/stowage-dev/stowage/api/v1alpha1"
)

// Count runs the walker, as a manager does, until it has counted one directory.
func (r *Reconciler) Count(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- r.inspector.walker.Start(ctx) }()
	select {
	case <-r.inspector.walker.Counted:
		stop()
		return <-ended
	case err := <-ended:
		return err
	}
}

// Register registers the metrics of volumes, as SetupWithManager does.
func (r *Reconciler) Register(registerer prometheus.Registerer) error {
	return r.inspector.metrics.Register(registerer)
}

// IsWokenBy reports whether a change leads to a reconcile.
func (r *Reconciler) IsWokenBy(before, now *stowagev1alpha1.NodeVolume) bool {
	return r.written.isOther(before, now)
}
