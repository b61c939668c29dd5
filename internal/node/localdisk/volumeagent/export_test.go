package volumeagent

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
)

// Count counts what directories hold, as a manager has it done, until one was counted.
func (r *Reconciler) Count(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- r.walker.Start(ctx) }()
	select {
	case <-r.walker.Counted:
		stop()
		return <-ended
	case err := <-ended:
		return err
	}
}

// Register registers the metrics of volumes, as SetupWithManager does.
func (r *Reconciler) Register(registerer prometheus.Registerer) error {
	return r.numbers.Register(registerer)
}
